//! Makes an existing index unique: `collMod` with `unique: true`.
//!
//! A key of an index that is not unique ends with its record. An index with `prepareUnique`, or one that became unique
//! here, keeps such keys (`Index::ends_with_record`): its writers lock the part before the record, and check whether any
//! key begins with it (`holder` of `write.rs`).

use crate::index_keys::own_part;
use crate::transaction::announce;
use crate::user_writes;
use crate::waiting::lock;
use crate::{Catalog, Collection, Index, from_storage};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{Direction, KeyRange, Lsn, RecordId, View};
use std::sync::Arc;

/// Maximum number of bytes of violations that are reported; there may be more.
const VIOLATIONS_BYTES_MAX: usize = 8 << 20;

/// Whether to make the index unique, or only to check whether that is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The index is made unique.
    Done,
    /// The index is only checked.
    Tried,
}

impl Catalog {
    /// Makes an index unique that already refuses new duplicates, so that none can be added during the search for old
    /// ones. Only the specification is written: the keys keep their record ids.
    /// # Errors
    /// `CannotConvertIndexToUnique` with the `violations`; `InvalidOptions` if the index does not refuse duplicates, or
    /// was changed meanwhile; as `OperationContext::check`.
    pub fn convert_to_unique(
        &self,
        collection: &Collection,
        index: &Arc<Index>,
        conversion: Conversion,
        operation: &dyn OperationSource,
    ) -> Result<Option<Lsn>> {
        user_writes::check_collection(collection, operation)?;
        if !index.prepares_unique {
            let message = "Cannot make index unique with 'unique: true' without 'prepareUnique' set before";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        let violations = violations(collection, index, operation)?;
        if violations.count() > 0 {
            let message = "Cannot convert the index to unique. Please resolve conflicting documents before running \
                           collMod again.";
            let details = DocumentBuf::new().with("violations", &violations);
            let failure = Failure::new(ErrorCode::CANNOT_CONVERT_INDEX_TO_UNIQUE, message);
            return Err(failure.with_details(details.as_ref()));
        }
        if conversion == Conversion::Tried {
            return Ok(None);
        }
        let _announced = announce(collection, operation)?;
        let mut changes = lock(&self.changes, operation)?;
        if !collection.indexes().iter().any(|present| Arc::ptr_eq(present, index)) {
            let message = format!("the index {} was changed while it was made unique", index.name);
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        let options = DocumentBuf::new().with("unique", true).with("prepareUnique", ValueRef::Null);
        self.respecify_under(&mut changes, collection, &index.name, options.as_ref(), operation).map(Some)
    }
}

/// The documents that share a key with another one, as `{ids: [...]}` for each key.
fn violations(collection: &Collection, index: &Index, operation: &dyn OperationSource) -> Result<ArrayBuf> {
    let snapshot = collection.snapshot();
    let mut cursor = snapshot.keys(index.keyspace, KeyRange::ALL, Direction::Forward);
    let mut violations = ArrayBuf::new();
    let mut told_bytes = 0;
    let (mut key, mut holders): (Vec<u8>, Vec<RecordId>) = (Vec::new(), Vec::new());
    loop {
        operation.operation().work(1)?;
        let next = cursor.next().map_err(from_storage)?.map(|(next, record)| (own_part(index, next), record));
        if let Some((next, record)) = next
            && next == key
            && !holders.is_empty()
        {
            holders.push(record);
            continue;
        }
        if holders.len() > 1 {
            let mut ids = ArrayBuf::new();
            let mut document = Vec::new();
            for holder in &holders {
                operation.operation().work(16)?;
                snapshot.record(collection.records, *holder, &mut document).map_err(from_storage)?;
                ids.push(DocumentRef::trusted(&document).get("_id").unwrap_or(ValueRef::Null));
                told_bytes += 16 + document.len().min(1024);
                if told_bytes > VIOLATIONS_BYTES_MAX {
                    break;
                }
            }
            violations.push(&DocumentBuf::new().with("ids", &ids));
        }
        let Some((next, record)) = next.filter(|_| told_bytes <= VIOLATIONS_BYTES_MAX) else {
            return Ok(violations);
        };
        key.clear();
        key.extend_from_slice(next);
        holders = vec![record];
    }
}
