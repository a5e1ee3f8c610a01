//! Repeated lookups by one value of a path on one snapshot, for a join that needs no plan per value. At first each lookup
//! reads the index. After enough lookups to pay for it, they use a table of the whole collection.

use crate::QueryShape;
use crate::lookup_table::{LookupMethod, LookupTable};
use crate::planner::names_array_index;
use bunko_bson::key_string::MAX_BYTE;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_catalog::{
    Answers, Collection, Index, IndexFilter, KEY_PREFIX_BYTES, KeyForm, from_storage, index_keys, shorten_key,
};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_store::{Direction, KeyRange, RecordId, Snapshot, View};
use std::ops::Bound;
use std::sync::Arc;

/// The index filter for queries by one value of a path, if an administrator set one.
fn index_filter(collection: &Collection, path: &str) -> Option<Arc<IndexFilter>> {
    let filters = collection.index_filters();
    if filters.is_empty() {
        return None;
    }
    let by_value = DocumentBuf::new().with(path, 0_i32);
    let none = DocumentRef::EMPTY;
    filters.get(QueryShape::of(by_value.as_ref(), none, none, none).as_bytes()).cloned()
}

/// An index whose first field is the path, with the snapshot for lookups.
pub struct EqualityLookup {
    collection: Arc<Collection>,
    index: Arc<Index>,
    snapshot: Arc<Snapshot>,
    operation: Arc<OperationContext>,
    key: Vec<u8>,
    /// Records of the current value; several keys may lead to one record.
    records: Vec<RecordId>,
    document: Vec<u8>,
    method: LookupMethod,
    starts: Vec<usize>,
}

impl EqualityLookup {
    /// A lookup by the shortest index that serves it; on a tie the oldest wins. Only indexes that an index filter
    /// allows are used; `None` if none serves. All of `indexes` must have been ready when the snapshot was taken.
    pub fn new(
        collection: &Arc<Collection>,
        indexes: &[Arc<Index>],
        path: &str,
        strings: &StringOrder,
        snapshot: Arc<Snapshot>,
        operation: Arc<OperationContext>,
    ) -> Option<Self> {
        let serves = |index: &&Arc<Index>| {
            let is_first = |field: &bunko_catalog::IndexField| field.path == path && field.form == KeyForm::Value;
            index.kind.answers() == Answers::ByField
                && !index.is_hidden
                && !index.is_clustered
                && index.partial_filter.is_none()
                && index.strings.is_bytes()
                && index.fields.first().is_some_and(is_first)
        };
        if names_array_index(path) || !strings.is_bytes() {
            return None;
        }
        let filter = index_filter(collection, path);
        let is_allowed =
            |index: &&Arc<Index>| filter.as_ref().is_none_or(|filter| filter.allows(&index.name, index.key_pattern()));
        let index = indexes.iter().filter(serves).filter(is_allowed).min_by_key(|index| index.fields.len())?;
        Some(Self {
            collection: Arc::clone(collection),
            index: Arc::clone(index),
            snapshot,
            operation,
            key: Vec::new(),
            records: Vec::new(),
            document: Vec::new(),
            // In an index of several fields, documents with one value are in the order of the other fields.
            method: if index.fields.len() == 1 { LookupMethod::FIRST } else { LookupMethod::TooLarge },
            starts: Vec::new(),
        })
    }

    /// Shows the documents whose path equals `value`, in index order. Returns whether the keys identify them.
    /// # Errors
    /// Errors of storage, of the visitor and of the operation.
    pub fn find(
        &mut self,
        value: ValueRef<'_>,
        visitor: &mut dyn FnMut(DocumentRef<'_>) -> Result<()>,
    ) -> Result<bool> {
        // A missing field has the key of null, and an array has the keys of its elements.
        let is_told =
            !matches!(value, ValueRef::Null | ValueRef::Undefined | ValueRef::Array(_) | ValueRef::Regex { .. });
        if !is_told || !self.collection.has_index(self.index.keyspace) {
            return Ok(false);
        }
        self.key.clear();
        self.index.strings.append_key(&mut self.key, value, self.index.fields[0].direction);
        if self.index.fields.len() > 1 && self.key.len() >= KEY_PREFIX_BYTES {
            // A shortened key need not start with these bytes.
            return Ok(false);
        }
        shorten_key(&mut self.key);
        let (collection, index, operation) = (&*self.collection, &*self.index, &*self.operation);
        self.method.count(collection, || table(collection, index, &self.snapshot, operation))?;
        if let LookupMethod::Table(table) = &self.method {
            table.find(&self.key, &mut self.starts, visitor)?;
            return Ok(true);
        }
        self.index.note_use();
        self.find_records()?;
        self.method.note_found(self.records.len());
        let keyspace = self.collection.records();
        for record in &self.records {
            self.operation.work(1 + self.document.len() / 64)?;
            let location = self.snapshot.record(keyspace, *record, &mut self.document).map_err(from_storage)?;
            if location.is_some() {
                visitor(DocumentRef::trusted(&self.document))?;
            }
        }
        Ok(true)
    }

    fn find_records(&mut self) -> Result<()> {
        self.records.clear();
        let keyspace = self.index.keyspace;
        if !self.index.ends_with_record() && self.index.fields.len() == 1 {
            self.records.extend(self.snapshot.key(keyspace, &self.key).map_err(from_storage)?);
            return Ok(());
        }
        let mut end = self.key.clone();
        end.push(MAX_BYTE);
        let range = KeyRange { start: Bound::Included(self.key.clone()), end: Bound::Excluded(end) };
        let mut keys = self.snapshot.keys(keyspace, range, Direction::Forward);
        let mut seen = std::collections::HashSet::new();
        while let Some((key, record)) = keys.next().map_err(from_storage)? {
            self.operation.work(1)?;
            // A shortened key may be the prefix of another key.
            if self.index.fields.len() == 1 && key.len() != self.key.len() + size_of::<RecordId>() {
                continue;
            }
            if self.index.fields.len() == 1 || seen.insert(record) {
                self.records.push(record);
            }
        }
        Ok(())
    }
}

/// The documents of a snapshot by their keys in an index.
fn table(
    collection: &Collection,
    index: &Index,
    snapshot: &Snapshot,
    operation: &OperationContext,
) -> Result<Option<LookupTable>> {
    LookupTable::of(collection, snapshot, operation, &mut |document, keys| {
        for key in index_keys(index, document)?.keys {
            keys.add(&key);
        }
        Ok(())
    })
}
