//! Parts of the tables that lead from record ids to locations, decoded and kept for scans.
//!
//! The tree's own walk decodes each entry and merges it with those of all tables, which takes more time than a scan's
//! stages do. A leaf holds what one table knows of record ids that follow each other. Tables never change, and their
//! numbers are never given anew, so a leaf is right for as long as it is kept. It holds all versions, so that every view
//! walks the same leaves.

use crate::key;
use crate::tree_files::TreeFiles;
use crate::view::malformed;
use bunko_store::{KeyspaceId, Location, Result};
use lsm_tree::{InternalValue, SeqNo, Table, TableId, UserKey};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::ops::Bound;
use std::sync::Arc;

/// Record ids of a leaf are alike but for so many bits.
const LEAF_BITS: u32 = 10;

/// One version of what a table knows of a record.
#[derive(Clone, Copy)]
pub(crate) struct LeafEntry {
    pub record: u64,
    pub lsn: SeqNo,
    /// [`DELETED`] for a deletion.
    location: Location,
}

/// No document lies at the end of all positions.
const DELETED: Location = Location { position: u64::MAX, length: 0, checksum: 0 };

impl LeafEntry {
    /// `None` where the record was deleted.
    pub fn location(&self) -> Option<Location> {
        (self.location != DELETED).then_some(self.location)
    }

    /// A version that a memtable has; no location where the record was deleted.
    pub fn new(record: u64, lsn: SeqNo, location: Option<Location>) -> Self {
        Self { record, lsn, location: location.unwrap_or(DELETED) }
    }

    fn of(entry: &InternalValue) -> Result<Self> {
        let record = entry.key.user_key.get(key::KEYSPACE_BYTES..).and_then(|id| id.try_into().ok());
        let record = record.map(u64::from_be_bytes).ok_or_else(|| malformed("record key"))?;
        let location = if entry.is_tombstone() {
            DELETED
        } else {
            Location::decode(&entry.value).ok_or_else(|| malformed("location"))?
        };
        Ok(Self { record, lsn: entry.key.seqno, location })
    }
}

/// What a table, or a memtable, knows of the records of a leaf: by record, of each the newest version first.
pub(crate) struct Leaf {
    pub entries: Box<[LeafEntry]>,
    /// A record behind the leaf, before which the table knows none that is not in it.
    pub next: Option<u64>,
}

/// A table, a keyspace, and the upper bits of record ids.
type LeafId = (TableId, KeyspaceId, u64);

#[derive(Clone)]
struct ByMemory;

impl Weighter<LeafId, Arc<Leaf>> for ByMemory {
    fn weight(&self, _: &LeafId, leaf: &Arc<Leaf>) -> u64 {
        (size_of::<Leaf>() + size_of_val(&*leaf.entries)) as u64
    }
}

/// The leaves that are kept.
pub(crate) struct Leaves {
    cache: Cache<LeafId, Arc<Leaf>, ByMemory>,
    files: Arc<TreeFiles>,
}

impl Leaves {
    pub fn new(cache_bytes: u64, files: &Arc<TreeFiles>) -> Self {
        let leaf_bytes = size_of::<LeafEntry>() as u64 * (1 << LEAF_BITS);
        let leaves = (cache_bytes / leaf_bytes).max(1) as usize;
        Self { cache: Cache::with_weighter(leaves, cache_bytes, ByMemory), files: Arc::clone(files) }
    }

    /// Bytes of leaves that are kept.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// The leaf of a table in which a record would be.
    /// # Errors
    /// What the tree says where it cannot read, and `Corrupt` for entries that nobody wrote.
    pub fn leaf(&self, table: &Table, keyspace: KeyspaceId, record: u64) -> Result<Arc<Leaf>> {
        let id = (table.id(), keyspace, record >> LEAF_BITS);
        if let Some(leaf) = self.cache.get(&id) {
            return Ok(leaf);
        }
        // The cache keeps it, for all who come after.
        let _uncounted = bunko_heap::Uncounted::begin();
        let leaf = Arc::new(self.read(table, keyspace, record >> LEAF_BITS)?);
        self.cache.insert(id, Arc::clone(&leaf));
        Ok(leaf)
    }

    fn read(&self, table: &Table, keyspace: KeyspaceId, upper_bits: u64) -> Result<Leaf> {
        let first = (upper_bits << LEAF_BITS).to_be_bytes().to_vec();
        let (start, end) = key::in_tree(keyspace, (Bound::Included(first), Bound::Unbounded));
        let mut entries = Vec::with_capacity(1 << LEAF_BITS);
        for entry in table.range((start.map(UserKey::from), end.map(UserKey::from))) {
            let entry = LeafEntry::of(&entry.map_err(|error| self.files.error(error))?)?;
            if entry.record >> LEAF_BITS != upper_bits {
                return Ok(Leaf { entries: entries.into_boxed_slice(), next: Some(entry.record) });
            }
            entries.push(entry);
        }
        Ok(Leaf { entries: entries.into_boxed_slice(), next: None })
    }
}

/// Whether a table may know a record of a range, which includes its ends.
pub(crate) fn reaches(table: &Table, keyspace: KeyspaceId, (first, last): (u64, u64)) -> bool {
    let range = &table.metadata.key_range;
    key::with_key(keyspace, &first.to_be_bytes(), |first| &**range.max() >= first)
        && key::with_key(keyspace, &last.to_be_bytes(), |last| &**range.min() <= last)
}

/// The least record of a keyspace that a table may know.
pub(crate) fn least(table: &Table, keyspace: KeyspaceId) -> u64 {
    let min = table.metadata.key_range.min();
    let record = min.strip_prefix(keyspace.0.to_be_bytes().as_slice()).and_then(|id| id.try_into().ok());
    record.map_or(0, u64::from_be_bytes)
}
