//! The newest location of records, and the record behind index keys, remembered from earlier reads.
//!
//! A point read costs two walks through memtable, filters and blocks; for what is read often this saves both. Only
//! reads at the latest state look here: a snapshot's LSN says nothing about what is remembered.
//!
//! A reader fills a slot only where no write has touched it since the reader looked: otherwise a reader that was slow
//! between its walk and its fill could put an old location back for good.

use bunko_store::{KeyspaceId, Location, RecordId};
use parking_lot::Mutex;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// Slots of each kind: at most 21 MB each, allocated chunk by chunk as they are used.
const SLOTS: usize = CHUNKS * CHUNK_SLOTS;
const CHUNKS: usize = 512;
const CHUNK_SLOTS: usize = 1024;
/// Longest index key that is remembered.
const KEY_BYTES_MAX: usize = 19;

/// Direct-mapped: a new entry replaces whatever had its slot.
pub(crate) struct RowCache {
    locations: Slots<(KeyspaceId, RecordId), Location>,
    records: Slots<IndexKey, RecordId>,
}

/// What a reader saw of a slot before it walked the tree.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    slot: usize,
    version: u32,
}

/// A short index key, by value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct IndexKey {
    keyspace: KeyspaceId,
    length: u8,
    bytes: [u8; KEY_BYTES_MAX],
}

impl IndexKey {
    /// `None` for a key too long to be remembered.
    fn new(keyspace: KeyspaceId, key: &[u8]) -> Option<Self> {
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self { keyspace, length: key.len() as u8, bytes })
    }
}

struct Slots<K, V>(Box<[OnceLock<Chunk<K, V>>]>);

type Chunk<K, V> = Box<[Mutex<Slot<K, V>>]>;

struct Slot<K, V> {
    version: u32,
    entry: Option<(K, V)>,
}

impl<K: Copy + Eq + Hash, V: Copy> Slots<K, V> {
    fn new() -> Self {
        Self((0..CHUNKS).map(|_| OnceLock::new()).collect())
    }

    fn slot(&self, index: usize) -> &Mutex<Slot<K, V>> {
        let chunk = self.0[index / CHUNK_SLOTS].get_or_init(|| {
            (0..CHUNK_SLOTS).map(|_| Mutex::new(Slot { version: 0, entry: None })).collect()
        });
        &chunk[index % CHUNK_SLOTS]
    }

    fn index(key: K) -> usize {
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        (hasher.finish() >> 32) as usize % SLOTS
    }

    fn get(&self, key: K) -> Result<V, Ticket> {
        let slot = Self::index(key);
        let content = self.slot(slot).lock();
        match content.entry {
            Some((found, value)) if found == key => Ok(value),
            _ => Err(Ticket { slot, version: content.version }),
        }
    }

    fn fill(&self, ticket: Ticket, key: K, value: V) {
        let mut content = self.slot(ticket.slot).lock();
        if content.version == ticket.version {
            content.entry = Some((key, value));
        }
    }

    fn forget(&self, key: K) {
        let index = Self::index(key);
        // A reader that could bring an old entry back has made the chunk.
        if self.0[index / CHUNK_SLOTS].get().is_none() {
            return;
        }
        let mut content = self.slot(index).lock();
        content.version = content.version.wrapping_add(1);
        content.entry = None;
    }
}

impl RowCache {
    pub fn new() -> Self {
        Self { locations: Slots::new(), records: Slots::new() }
    }

    /// Where the record's newest version stands, or a ticket to remember it by.
    pub fn location(&self, keyspace: KeyspaceId, record: RecordId) -> Result<Location, Ticket> {
        self.locations.get((keyspace, record))
    }

    pub fn fill_location(&self, ticket: Ticket, keyspace: KeyspaceId, record: RecordId, location: Location) {
        self.locations.fill(ticket, (keyspace, record), location);
    }

    /// The record behind an index key, or a ticket to remember it by; no ticket where the key is too long.
    pub fn record(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<RecordId, Option<(IndexKey, Ticket)>> {
        let key = IndexKey::new(keyspace, key).ok_or(None)?;
        self.records.get(key).map_err(|ticket| Some((key, ticket)))
    }

    pub fn fill_record(&self, (key, ticket): (IndexKey, Ticket), record: RecordId) {
        self.records.fill(ticket, key, record);
    }

    /// A record was replaced or deleted; called after the tree knows.
    pub fn forget_location(&self, keyspace: KeyspaceId, record: RecordId) {
        self.locations.forget((keyspace, record));
    }

    /// An index key was put or deleted; called after the tree knows.
    pub fn forget_record(&self, keyspace: KeyspaceId, key: &[u8]) {
        if let Some(key) = IndexKey::new(keyspace, key) {
            self.records.forget(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYSPACE: KeyspaceId = KeyspaceId(3);
    const OLD: Location = Location { position: 1, length: 2, checksum: 3 };

    #[test]
    fn a_slow_reader_does_not_bring_an_old_location_back() {
        let cache = RowCache::new();
        let ticket = cache.location(KEYSPACE, RecordId(7)).expect_err("nothing yet");
        cache.forget_location(KEYSPACE, RecordId(7));
        cache.fill_location(ticket, KEYSPACE, RecordId(7), OLD);
        let ticket = cache.location(KEYSPACE, RecordId(7)).expect_err("the fill came too late");
        cache.fill_location(ticket, KEYSPACE, RecordId(7), OLD);
        assert_eq!(cache.location(KEYSPACE, RecordId(7)).ok(), Some(OLD));
    }

    #[test]
    fn keys_that_differ_in_length_only_are_different() {
        let cache = RowCache::new();
        let ticket = cache.record(KEYSPACE, b"a").expect_err("nothing yet").expect("short");
        cache.fill_record(ticket, RecordId(1));
        assert_eq!(cache.record(KEYSPACE, b"a").ok(), Some(RecordId(1)));
        assert!(cache.record(KEYSPACE, b"a\0").is_err());
        assert!(matches!(cache.record(KEYSPACE, &[1; KEY_BYTES_MAX + 1]), Err(None)));
    }
}
