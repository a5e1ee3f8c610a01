//! The memtables and the committed state that make up the newest state. Replaced as a whole, so that readers take no
//! lock.

use crate::committed::{Committed, Entry};
use crate::memtable::Memtable;
use crate::stored::{self, Content};
use bunko_store::{KeyspaceId, Location, RecordId, Result};
use bunko_versions::Known;
use std::sync::Arc;

/// One arrangement of memtables and a committed state. A newer memtable hides entries of older ones, and all memtables
/// hide those of the committed state.
#[derive(Clone)]
pub(crate) struct Arrangement {
    pub active: Arc<Memtable>,
    /// Memtables that are being written to the data file, newest first.
    pub sealed: Vec<Arc<Memtable>>,
    pub committed: Arc<Committed>,
}

impl Arrangement {
    /// The arrangement with a new active memtable; the present one is sealed.
    pub fn sealed(&self) -> Self {
        let sealed = self.memtables().cloned().collect();
        Self { active: Arc::default(), sealed, committed: Arc::clone(&self.committed) }
    }

    /// The arrangement after memtables were written to the data file.
    pub fn written(&self, memtables: &[Arc<Memtable>], committed: &Arc<Committed>) -> Self {
        let is_written = |sealed: &Arc<Memtable>| memtables.iter().any(|memtable| Arc::ptr_eq(memtable, sealed));
        let sealed = self.sealed.iter().filter(|sealed| !is_written(sealed)).cloned().collect();
        Self { active: Arc::clone(&self.active), sealed, committed: Arc::clone(committed) }
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }

    /// Reads the newest version of a record below `before` into `into` and returns its location; `None` if there is no
    /// such record.
    pub fn record(
        &self,
        keyspace: KeyspaceId,
        record: RecordId,
        before: u64,
        into: &mut Vec<u8>,
    ) -> Result<Option<Location>> {
        into.clear();
        match self.memtables().find_map(|memtable| memtable.record(keyspace, record, before)) {
            Some(Known::Value(found)) => {
                into.extend_from_slice(&found.document);
                return Ok(Some(found.location));
            }
            Some(Known::Deleted) => return Ok(None),
            None => {}
        }
        let key = record.0.to_be_bytes();
        let Some(entry) = self.committed.get(keyspace, Content::Records, &key)? else { return Ok(None) };
        let unverified = stored::unverified_record(keyspace, entry.key, entry.value);
        let (location, document) = self.intact(&entry, unverified)?;
        // Copied before the check: copying fetches a cold document faster than a checksum does, and the bytes that are
        // verified are those that the caller gets.
        into.extend_from_slice(document);
        let verified = self.intact(&entry, stored::verify(location, into));
        if verified.is_err() {
            into.clear();
        }
        verified.map(|()| Some(location))
    }

    /// The record that an index key leads to below `before`; `None` if there is no such key.
    pub fn key(&self, keyspace: KeyspaceId, key: &[u8], before: u64) -> Result<Option<RecordId>> {
        match self.memtables().find_map(|memtable| memtable.key(keyspace, key, before)) {
            Some(Known::Value(record)) => return Ok(Some(record)),
            Some(Known::Deleted) => return Ok(None),
            None => {}
        }
        let prefix = stored::prefix(key);
        let Some(entry) = self.committed.get(keyspace, Content::Keys, prefix)? else { return Ok(None) };
        if !stored::is_shared(prefix) {
            return self.intact(&entry, stored::key(keyspace, entry.key, entry.value)).map(Some);
        }
        for long in stored::long_keys(keyspace, prefix, entry.value) {
            let (rest, record) = self.intact(&entry, long)?;
            if *rest == key[prefix.len()..] {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn intact<T>(&self, entry: &Entry<'_>, decoded: Result<T, &'static str>) -> Result<T> {
        decoded.map_err(|found| self.committed.file.corrupt(entry.offset_bytes, found))
    }
}
