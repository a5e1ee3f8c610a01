//! A cache of rows, the records and locations that primary keys lead to.
//!
//! A point read walks through memtables, filters and blocks; the cache saves that for keys that are read often. Only
//! reads of the latest state use it: a snapshot's LSN does not tell whether a cached row is visible to it.
//!
//! A reader fills a slot only if no write has touched the slot since the reader looked. Otherwise a reader that is slow
//! between its walk and its fill could put an old location back for good.

use bunko_store::{KeyspaceId, Location, RecordId};
use foldhash::quality::RandomState;
use parking_lot::Mutex;
use std::hash::{BuildHasher, Hash};
use std::sync::{LazyLock, OnceLock};

/// Number of slots: at most 36 MB, allocated in chunks as they are used.
const SLOTS: usize = CHUNKS * CHUNK_SLOTS;
const CHUNKS: usize = 512;
const CHUNK_SLOTS: usize = 1024;
/// Length of the longest index key that is cached.
const KEY_BYTES_MAX: usize = 19;

/// Direct-mapped: a new entry replaces the entry in its slot.
pub(crate) struct RowCache(Box<[OnceLock<Chunk>]>);

type Chunk = Box<[Mutex<Slot>]>;

struct Slot {
    version: u32,
    entry: Option<(PrimaryKey, Row)>,
}

/// A record and the location of its newest document.
pub(crate) type Row = (RecordId, Location);

/// State of a slot before its reader walked the tree.
pub(crate) struct Ticket {
    key: PrimaryKey,
    version: u32,
}

/// A short primary key, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PrimaryKey {
    keyspace: KeyspaceId,
    length: u8,
    bytes: [u8; KEY_BYTES_MAX],
}

impl PrimaryKey {
    /// `None` if the key is too long for the cache.
    fn new(keyspace: KeyspaceId, key: &[u8]) -> Option<Self> {
        let mut bytes = [0; KEY_BYTES_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self { keyspace, length: key.len() as u8, bytes })
    }

    fn slot(&self) -> usize {
        // Seeded anew in each process: clients choose keys, and could choose them all for one slot.
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
        SEED.hash_one(self) as usize % SLOTS
    }
}

impl RowCache {
    pub fn new() -> Self {
        Self((0..CHUNKS).map(|_| OnceLock::new()).collect())
    }

    fn slot(&self, index: usize) -> &Mutex<Slot> {
        let chunk = self.0[index / CHUNK_SLOTS]
            .get_or_init(|| (0..CHUNK_SLOTS).map(|_| Mutex::new(Slot { version: 0, entry: None })).collect());
        &chunk[index % CHUNK_SLOTS]
    }

    /// The row of a primary key, or a ticket for filling its slot; no ticket if the key is too long.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Row, Option<Ticket>> {
        let key = PrimaryKey::new(keyspace, key).ok_or(None)?;
        let slot = self.slot(key.slot()).lock();
        match slot.entry {
            Some((found, row)) if found == key => Ok(row),
            _ => Err(Some(Ticket { key, version: slot.version })),
        }
    }

    /// Caches a row, unless a write has touched the slot since the ticket was issued.
    pub fn fill(&self, ticket: &Ticket, row: Row) {
        let mut slot = self.slot(ticket.key.slot()).lock();
        if slot.version == ticket.version {
            slot.entry = Some((ticket.key, row));
        }
    }

    /// Updates the row of a primary key. Must be called after the memtable has it.
    pub fn replace(&self, keyspace: KeyspaceId, key: &[u8], row: Row) {
        self.written(keyspace, key, Some(row));
    }

    /// Removes the row of a primary key. Must be called after the memtable has the deletion.
    pub fn forget(&self, keyspace: KeyspaceId, key: &[u8]) {
        self.written(keyspace, key, None);
    }

    fn written(&self, keyspace: KeyspaceId, key: &[u8], row: Option<Row>) {
        let Some(key) = PrimaryKey::new(keyspace, key) else { return };
        let index = key.slot();
        // A reader that could bring an old row back has allocated the chunk; without a chunk there is none.
        if self.0[index / CHUNK_SLOTS].get().is_none() {
            return;
        }
        let mut slot = self.slot(index).lock();
        slot.version = slot.version.wrapping_add(1);
        slot.entry = row.map(|row| (key, row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYSPACE: KeyspaceId = KeyspaceId(3);
    const OLD: Row = (RecordId(7), Location { position: 1, length: 2, checksum: 3 });

    fn ticket(cache: &RowCache, key: &[u8]) -> Ticket {
        cache.get(KEYSPACE, key).expect_err("not remembered").expect("short enough")
    }

    #[test]
    fn a_slow_reader_does_not_bring_an_old_location_back() {
        let cache = RowCache::new();
        let slow = ticket(&cache, b"a");
        cache.forget(KEYSPACE, b"a");
        cache.fill(&slow, OLD);
        cache.fill(&ticket(&cache, b"a"), OLD);
        assert_eq!(cache.get(KEYSPACE, b"a").ok(), Some(OLD));
    }

    #[test]
    fn a_write_leaves_its_own_row() {
        let cache = RowCache::new();
        let slow = ticket(&cache, b"a");
        let new = (OLD.0, Location { position: 9, ..OLD.1 });
        cache.replace(KEYSPACE, b"a", new);
        cache.fill(&slow, OLD);
        assert_eq!(cache.get(KEYSPACE, b"a").ok(), Some(new));
    }

    #[test]
    fn keys_that_differ_in_length_only_are_different() {
        let cache = RowCache::new();
        cache.fill(&ticket(&cache, b"a"), OLD);
        assert!(cache.get(KEYSPACE, b"a\0").is_err());
        assert!(matches!(cache.get(KEYSPACE, &[1; KEY_BYTES_MAX + 1]), Err(None)));
    }
}
