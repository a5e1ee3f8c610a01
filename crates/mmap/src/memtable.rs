//! The changes since the last checkpoint, in memory.

use bunko_store::{Effect, Effects, KeyspaceId, Location, Lsn, Presence, RecordId};
use bunko_versions::{Before, Forgotten, HeadKey, Known, Put, Version, VersionedMap, Views};
use byteview::ByteView;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An index key; usual lengths need no allocation.
pub(crate) type IndexKey = HeadKey<ByteView>;

/// A record's newest document.
#[derive(Clone)]
pub(crate) struct Record {
    pub location: Location,
    pub document: Arc<[u8]>,
}

pub(crate) type Records = VersionedMap<RecordId, Record>;
pub(crate) type Keys = VersionedMap<IndexKey, RecordId>;

/// Bytes of an entry beside its document or key: its version and its share of a node.
const RECORD_BYTES: u64 = (size_of::<RecordId>() + size_of::<Version<Record>>()) as u64 * 3 / 2;
const KEY_BYTES: u64 = (size_of::<IndexKey>() + size_of::<Version<RecordId>>()) as u64 * 3 / 2;
/// Bytes of a document beside its content: its reference counts and the allocator's overhead.
const DOCUMENT_BYTES: u64 = 32;

/// Recent entries of all keyspaces.
#[derive(Default)]
pub(crate) struct Memtable {
    records: Shelves<Records>,
    keys: Shelves<Keys>,
    dropped: Mutex<Vec<KeyspaceId>>,
    bytes: AtomicU64,
    changes: AtomicU64,
}

/// Maps by keyspace.
struct Shelves<M>(RwLock<FxHashMap<KeyspaceId, Arc<M>>>);

impl<M> Default for Shelves<M> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<M: Default> Shelves<M> {
    fn with<R>(&self, keyspace: KeyspaceId, run: impl FnOnce(&M) -> R) -> Option<R> {
        self.0.read().get(&keyspace).map(|map| run(map))
    }

    fn get(&self, keyspace: KeyspaceId) -> Option<Arc<M>> {
        self.0.read().get(&keyspace).cloned()
    }

    fn get_or_make(&self, keyspace: KeyspaceId) -> Arc<M> {
        self.get(keyspace).unwrap_or_else(|| Arc::clone(self.0.write().entry(keyspace).or_default()))
    }

    /// All maps in order of keyspaces.
    fn in_order(&self) -> Vec<(KeyspaceId, Arc<M>)> {
        let mut maps: Vec<_> = self.0.read().iter().map(|(keyspace, map)| (*keyspace, Arc::clone(map))).collect();
        maps.sort_by_key(|(keyspace, _)| *keyspace);
        maps
    }
}

impl Memtable {
    /// Applies a record's effects and forgets versions that no view sees. Returns the growth of the memtable in bytes,
    /// which may be negative.
    pub fn apply(&self, lsn: Lsn, effects: Effects<'_>, views: Views<'_>) -> i64 {
        let (mut growth, mut changes) = (0, 0);
        for effect in effects {
            growth += self.apply_one(lsn, effect, views);
            changes += 1;
        }
        self.bytes.fetch_add(growth as u64, Ordering::Relaxed);
        self.changes.fetch_add(changes, Ordering::Relaxed);
        growth
    }

    fn apply_one(&self, lsn: Lsn, effect: Effect<'_>, views: Views<'_>) -> i64 {
        match effect {
            Effect::PutRecord { keyspace, record, location, document, .. } => {
                let document = Arc::from(document);
                self.put_record(keyspace, record, lsn, Some(Record { location, document }), views)
            }
            Effect::DeleteRecord { keyspace, record, .. } => self.put_record(keyspace, record, lsn, None, views),
            // The key leads to the same record as before, and the record's own entry has the new location, so nothing
            // is put.
            Effect::PutPrimaryKey { presence: Presence::Moved, .. } | Effect::CreateKeyspace { .. } => 0,
            Effect::PutKey { keyspace, key, record, .. } | Effect::PutPrimaryKey { keyspace, key, record, .. } => {
                self.put_key(keyspace, key, lsn, Some(record), views)
            }
            Effect::DeleteKey { keyspace, key } => self.put_key(keyspace, key, lsn, None, views),
            Effect::AdoptFile { .. } | Effect::PlaceRecord { .. } => unreachable!("this engine stages nothing"),
            Effect::DropKeyspace { keyspace } => {
                self.dropped.lock().push(keyspace);
                0
            }
        }
    }

    fn put_record(
        &self,
        keyspace: KeyspaceId,
        record: RecordId,
        lsn: Lsn,
        value: Option<Record>,
        views: Views<'_>,
    ) -> i64 {
        let bytes_of = |value: Option<&Record>| value.map_or(0, |value| value.document.len() as u64 + DOCUMENT_BYTES);
        let added = bytes_of(value.as_ref());
        let put = self.records.get_or_make(keyspace).put(record, lsn.0, value, views);
        growth(&put, RECORD_BYTES, size_of::<Version<Record>>() as u64, added, bytes_of)
    }

    fn put_key(&self, keyspace: KeyspaceId, key: &[u8], lsn: Lsn, value: Option<RecordId>, views: Views<'_>) -> i64 {
        debug_assert!(!key.is_empty(), "LMDB has no place for an empty key, and no key string is empty");
        let put = self.keys.get_or_make(keyspace).put(IndexKey::from(key), lsn.0, value, views);
        growth(&put, KEY_BYTES + key.len() as u64, size_of::<Version<RecordId>>() as u64, 0, |_| 0)
    }

    /// The version or deletion of a record below `before`; `None` if this memtable has neither.
    pub fn record(&self, keyspace: KeyspaceId, record: RecordId, before: u64) -> Option<Known<Record>> {
        self.records.with(keyspace, |records| records.get(&record, before))?
    }

    /// The version or deletion of an index key below `before`; `None` if this memtable has neither.
    pub fn key(&self, keyspace: KeyspaceId, key: &[u8], before: u64) -> Option<Known<RecordId>> {
        self.keys.with(keyspace, |keys| keys.get(&IndexKey::from(key), before))?
    }

    /// A keyspace's records, for walking; `None` if the memtable has none.
    pub fn records(&self, keyspace: KeyspaceId) -> Option<Arc<Records>> {
        self.records.get(keyspace)
    }

    /// An index's keys, for walking; `None` if the memtable has none.
    pub fn keys(&self, keyspace: KeyspaceId) -> Option<Arc<Keys>> {
        self.keys.get(keyspace)
    }

    /// All record stores in order of keyspaces.
    pub fn all_records(&self) -> Vec<(KeyspaceId, Arc<Records>)> {
        self.records.in_order()
    }

    /// All indexes in order of keyspaces.
    pub fn all_keys(&self) -> Vec<(KeyspaceId, Arc<Keys>)> {
        self.keys.in_order()
    }

    /// Dropped keyspaces.
    pub fn dropped(&self) -> Vec<KeyspaceId> {
        self.dropped.lock().clone()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.records.0.read().is_empty() && self.keys.0.read().is_empty() && self.dropped.lock().is_empty()
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of applied effects.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

/// Bytes that a put added, minus the bytes of the versions that it forgot.
fn growth<V>(
    put: &Put<V>,
    entry_bytes: u64,
    version_bytes: u64,
    added: u64,
    bytes_of: impl Fn(Option<&V>) -> u64,
) -> i64 {
    let forgotten = put.forgotten.as_ref();
    let of_version = |value| version_bytes + bytes_of(value);
    let forgotten: u64 = forgotten.into_iter().flat_map(Forgotten::values).map(of_version).sum();
    let new = if put.before == Before::Nothing { entry_bytes } else { version_bytes };
    (new + added) as i64 - forgotten as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_store::KeyspaceId;

    const KEYSPACE: KeyspaceId = KeyspaceId(3);

    fn record(length: usize) -> Record {
        let location = Location { position: 0, length: length as u32, checksum: 0 };
        Record { location, document: vec![0; length].into() }
    }

    #[test]
    fn bytes_follow_what_is_kept() {
        let memtable = Memtable::default();
        let put = |lsn, length, oldest| {
            memtable.put_record(KEYSPACE, RecordId(1), Lsn(lsn), Some(record(length)), Views::from(oldest))
        };
        let version = size_of::<Version<Record>>() as i64 + DOCUMENT_BYTES as i64;
        assert_eq!(put(1, 100, 1), RECORD_BYTES as i64 + DOCUMENT_BYTES as i64 + 100);
        assert_eq!(put(2, 50, 2), version + 50);
        // The first of the three versions is forgotten.
        assert_eq!(put(3, 70, 3), 70 - 100);
        assert!(
            matches!(memtable.record(KEYSPACE, RecordId(1), 3), Some(Known::Value(found)) if found.document.len() == 50)
        );
    }
}
