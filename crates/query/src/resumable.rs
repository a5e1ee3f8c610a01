//! A scan in record order that reports its position, so that another scan can resume there.

use crate::find_query::FindQuery;
use crate::record_scan::RecordScan;
use crate::scan_start::ScanStart;
use bunko_bson::DocumentRef;
use bunko_catalog::{Collection, dropped, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Direction, RecordCursor, RecordId, RecordRange, Snapshot, View};
use std::ops::Bound;
use std::sync::Arc;

/// The scan, over one snapshot.
pub struct ResumableScan {
    collection: Arc<Collection>,
    cursor: Box<dyn RecordCursor>,
    _snapshot: Snapshot,
    scan: RecordScan,
    /// The position before the last document was returned.
    place_before: Option<RecordId>,
}

impl ResumableScan {
    /// Opens the scan.
    /// # Errors
    /// `KeyNotFound` if the record to start after is gone; storage errors.
    pub fn new(collection: &Arc<Collection>, query: Arc<FindQuery>, start: ScanStart) -> Result<Self> {
        let snapshot = collection.snapshot_for(&*query.scope.operation)?;
        let records = collection.records();
        let start = match start {
            ScanStart::First | ScanStart::BehindPlace(None) => Bound::Unbounded,
            ScanStart::BehindPlace(Some(record)) => Bound::Excluded(record),
            ScanStart::Behind(record) => {
                let mut document = Vec::new();
                let is_there = match record {
                    None => false,
                    Some(record) => snapshot.record(records, record, &mut document).map_err(from_storage)?.is_some(),
                };
                let Some(record) = record.filter(|_| is_there) else { return Err(lost(record)) };
                Bound::Excluded(record)
            }
        };
        let range = RecordRange { start, end: Bound::Unbounded };
        Ok(Self {
            collection: Arc::clone(collection),
            cursor: snapshot.records(records, range, Direction::Forward),
            _snapshot: snapshot,
            scan: RecordScan::new(query),
            place_before: None,
        })
    }

    /// The record examined last; `None` at the end of the collection.
    pub fn place(&self) -> Option<RecordId> {
        self.scan.place
    }

    /// The value of [`Self::place`] at the last call of [`Self::next`].
    pub fn place_before(&self) -> Option<RecordId> {
        self.place_before
    }

    /// Documents examined so far.
    pub fn examined(&self) -> u64 {
        self.scan.examined
    }

    /// Checks whether the scan may go on after a pause.
    /// # Errors
    /// `QueryPlanKilled` if the collection was dropped.
    pub fn resume(&self) -> Result<()> {
        if self.collection.is_dropped() { Err(dropped(&self.collection)) } else { Ok(()) }
    }

    /// The next matching document.
    /// # Errors
    /// Errors of storage, of expressions and of the operation.
    #[allow(clippy::should_implement_trait, reason = "what is lent until the next call cannot be an iterator's item")]
    pub fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        self.place_before = self.scan.place;
        if self.scan.is_over() {
            return Ok(None);
        }
        if !self.scan.search(self.cursor.as_mut())? {
            self.scan.place = None;
            return Ok(None);
        }
        self.scan.give()
    }
}

fn lost(record: Option<RecordId>) -> Failure {
    let record = record.map_or_else(|| "null".to_owned(), |record| record.0.cast_signed().to_string());
    let message = format!(
        "Failed to resume collection scan: the recordId from which we are attempting to resume no longer exists in the \
         collection: RecordId({record})"
    );
    Failure::new(ErrorCode::KEY_NOT_FOUND, message)
}
