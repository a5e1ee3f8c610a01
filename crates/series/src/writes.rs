//! The writes of a command into time series.

use crate::open_buckets::OpenBuckets;
use bunko_catalog::Catalog;
use bunko_catalog::stored_document::Stamps;
use bunko_operation::OperationSource;
use bunko_store::Lsn;

/// Writes measurements, as `Writes` of `bunko_query` writes documents.
pub struct SeriesWrites<'w> {
    pub(crate) catalog: &'w Catalog,
    pub(crate) open_buckets: &'w OpenBuckets,
    pub(crate) stamps: &'w dyn Stamps,
    pub(crate) operation: &'w dyn OperationSource,
    written: Option<Lsn>,
}

impl<'w> SeriesWrites<'w> {
    /// Writes for an operation. `stamps` gives buckets their ids.
    pub fn new(
        catalog: &'w Catalog,
        open_buckets: &'w OpenBuckets,
        stamps: &'w dyn Stamps,
        operation: &'w dyn OperationSource,
    ) -> Self {
        Self { catalog, open_buckets, stamps, operation, written: None }
    }

    /// The LSN of the last update or delete, also after a failure. The outcome of an insert has its own LSN.
    pub fn written(&self) -> Option<Lsn> {
        self.written
    }

    pub(crate) fn note_written(&mut self, lsn: Option<Lsn>) {
        self.written = self.written.max(lsn);
    }
}
