//! Compares records with indexes, for `validate` and the crash suites.

use crate::index_keys::{keys_for, stored_key};
use crate::{Collection, Index, from_storage};
use bunko_bson::DocumentRef;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Direction, KeyRange, RecordRange, Snapshot, View};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of errors that are described.
const ERRORS_MAX: usize = 20;

/// The result of a validation, which changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    /// Number of records read.
    pub records: u64,
    /// Records that are not valid BSON or whose keys cannot be derived.
    pub invalid_documents: u64,
    /// Number of keys found, by index name.
    pub keys_per_index: Vec<(String, u64)>,
    /// Names of indexes that disagree with the records.
    pub invalid_indexes: BTreeSet<String>,
    /// Descriptions of the first errors.
    pub errors: Vec<String>,
    /// Number of all errors.
    pub error_count: u64,
}

impl Validation {
    fn complain(&mut self, error: String) {
        self.error_count += 1;
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
    }

    fn complain_of_index(&mut self, index: &Index, error: String) {
        self.invalid_indexes.insert(index.name.clone());
        self.complain(error);
    }

    /// Whether records, indexes and counts agree.
    pub fn is_valid(&self) -> bool {
        self.error_count == 0
    }
}

/// An operation's steps for looking up one key.
const STEPS_PER_LOOKUP: usize = 16;

impl Collection {
    /// Reads every record and every key of one snapshot.
    /// # Errors
    /// Failures of the storage; as `OperationContext::check`.
    pub fn validate(&self, operation: &dyn OperationSource) -> Result<Validation> {
        let mut validation = Validation::default();
        let (indexes, snapshot) = self.indexes_and_snapshot()?;
        let mut expected = vec![0_u64; indexes.len()];
        let mut cursor = snapshot.records(self.records, RecordRange::ALL, Direction::Forward);
        while let Some((record, _, bytes)) = cursor.next().map_err(from_storage)? {
            validation.records += 1;
            operation.operation().work(1 + bytes.len() / 64)?;
            let document = match DocumentRef::parse(bytes) {
                Ok(document) => document,
                Err(error) => {
                    validation.invalid_documents += 1;
                    validation.complain(format!("record {}: {error}", record.0));
                    continue;
                }
            };
            for (index, expected) in indexes.iter().zip(&mut expected) {
                for mut key in keys_for(index, document, Some(operation))?.keys {
                    operation.operation().work(STEPS_PER_LOOKUP)?;
                    stored_key(index, &mut key, record);
                    *expected += 1;
                    let found = snapshot.key(index.keyspace, &key).map_err(from_storage)?;
                    if found != Some(record) {
                        let error = format!("record {} has no key in index {}", record.0, index.name);
                        validation.complain_of_index(index, error);
                    }
                }
            }
        }
        for (index, expected) in indexes.iter().zip(expected) {
            let mut cursor = snapshot.keys(index.keyspace, KeyRange::ALL, Direction::Forward);
            let mut found = 0;
            while cursor.next().map_err(from_storage)?.is_some() {
                operation.operation().work(1)?;
                found += 1;
            }
            if found != expected {
                let error = format!("index {} has {found} keys, its records have {expected}", index.name);
                validation.complain_of_index(index, error);
            }
            validation.keys_per_index.push((index.name.clone(), found));
        }
        Ok(validation)
    }

    /// The indexes that are complete in a snapshot, and the snapshot. An index that was finished or dropped around that
    /// time is left out.
    fn indexes_and_snapshot(&self) -> Result<(Vec<Arc<Index>>, Snapshot)> {
        let mut before = self.ready_indexes();
        let mut snapshot = self.snapshot();
        while self.are_indexes_changing() {
            self.wait_for_indexes(|| Ok(()))?;
            (before, snapshot) = (self.ready_indexes(), self.snapshot());
        }
        let after = self.ready_indexes();
        before.retain(|index| after.iter().any(|other| Arc::ptr_eq(index, other)));
        Ok((before, snapshot))
    }
}
