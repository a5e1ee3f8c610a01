//! A tailable find on a capped collection: continues with documents inserted later.

use crate::find_query::FindQuery;
use crate::record_scan::RecordScan;
use bunko_bson::DocumentRef;
use bunko_catalog::{Collection, Namespace, dropped, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Direction, RecordCursor, RecordRange, Snapshot, View};
use std::ops::Bound;
use std::sync::Arc;

/// A scan in insertion order. While it waits, it keeps no snapshot, only its position: the last record that it
/// examined.
pub struct Tail {
    collection: Arc<Collection>,
    namespace: Arc<Namespace>,
    scan: RecordScan,
    /// Open from the first document of a batch until its end.
    open: Option<Open>,
}

struct Open {
    cursor: Box<dyn RecordCursor>,
    _snapshot: Snapshot,
}

impl Tail {
    /// Starts at the oldest document.
    /// # Errors
    /// `BadValue` for a sort other than natural order, and for key bounds.
    pub fn new(collection: &Arc<Collection>, query: Arc<FindQuery>) -> Result<Self> {
        if query.sort.is_some() || query.key_bounds.is_some() || query.near.is_some() {
            return Err(Failure::bad_value("cannot use tailable option with a sort other than {$natural: 1}"));
        }
        Ok(Self {
            namespace: collection.namespace(),
            collection: Arc::clone(collection),
            scan: RecordScan::new(query),
            open: None,
        })
    }

    /// The collection that it reads.
    pub fn collection(&self) -> &Arc<Collection> {
        &self.collection
    }

    /// Whether it has a position to continue from: before the first document it has none, and is over.
    pub fn has_place(&self) -> bool {
        self.scan.place.is_some()
    }

    /// Documents examined so far.
    pub fn examined(&self) -> u64 {
        self.scan.examined
    }

    /// Continues after a pause, with documents inserted meanwhile.
    /// # Errors
    /// `QueryPlanKilled` if the collection was dropped or renamed; `CappedPositionLost` if the last document examined
    /// is gone, since later ones may be gone too.
    pub fn resume(&mut self) -> Result<()> {
        if self.collection.is_dropped() {
            return Err(dropped(&self.collection));
        }
        let name = self.collection.namespace();
        if name != self.namespace {
            let message = format!("collection renamed from '{}' to '{name}'", self.namespace);
            return Err(Failure::new(ErrorCode::QUERY_PLAN_KILLED, message));
        }
        self.open = None;
        let snapshot = self.collection.snapshot();
        let records = self.collection.records();
        if let Some(place) = self.scan.place {
            let mut document = Vec::new();
            if snapshot.record(records, place, &mut document).map_err(from_storage)?.is_none() {
                let message = format!(
                    "CollectionScan died due to position in capped collection being deleted. Last seen record id: {}",
                    place.0
                );
                return Err(Failure::new(ErrorCode::CAPPED_POSITION_LOST, message));
            }
        }
        let start = self.scan.place.map_or(Bound::Unbounded, Bound::Excluded);
        let range = RecordRange { start, end: Bound::Unbounded };
        let cursor = snapshot.records(records, range, Direction::Forward);
        self.open = Some(Open { cursor, _snapshot: snapshot });
        Ok(())
    }

    /// The next matching document; `None` at the present end.
    /// # Errors
    /// Errors of storage, of expressions and of the operation.
    #[allow(clippy::should_implement_trait, reason = "what is lent until the next call cannot be an iterator's item")]
    pub fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        if self.scan.is_over() {
            // The scan still has a position, so the cursor stays open, as on MongoDB.
            return Ok(None);
        }
        if self.open.is_none() {
            self.resume()?;
        }
        let is_found = match &mut self.open {
            Some(open) => self.scan.search(open.cursor.as_mut())?,
            None => false,
        };
        if !is_found {
            self.open = None;
            return Ok(None);
        }
        self.scan.give()
    }
}
