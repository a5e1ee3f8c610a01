//! The parts of a command that pipelines write with.

use bunko_catalog::Catalog;
use bunko_catalog::stored_document::Stamps;
use bunko_operation::OperationContext;
use bunko_series::{OpenBuckets, SeriesWrites};
use bunko_store::Lsn;
use std::sync::Arc;

/// The parts of a command that a pipeline writes with, and the record of its last write.
pub struct WriteContext<'w> {
    /// Databases, collections, indexes.
    pub catalog: &'w Catalog,
    /// The time series buckets that take the next measurements.
    pub open_buckets: &'w OpenBuckets,
    /// Gives documents their ids.
    pub stamps: &'w dyn Stamps,
    /// Random bits, for the name of a temporary collection.
    pub random: &'w dyn Fn() -> u64,
    /// The command's operation.
    pub operation: &'w OperationContext,
    /// An operation of the server itself, which removes a temporary collection even if the command was interrupted.
    pub own_operation: Arc<OperationContext>,
    /// Log record of the last write; set also if the pipeline fails after it.
    pub written: Option<Lsn>,
}

impl WriteContext<'_> {
    pub(super) fn note_written(&mut self, lsn: Option<Lsn>) {
        self.written = self.written.max(lsn);
        if lsn.is_some() {
            self.operation.note_change();
        }
    }

    pub(super) fn series(&self) -> SeriesWrites<'_> {
        SeriesWrites::new(self.catalog, self.open_buckets, self.stamps, self.operation)
    }
}
