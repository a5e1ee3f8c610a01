//! A cache of decoded table blocks.
//!
//! The tree's own walk decodes each entry and merges it with those of all tables, which takes more time than a scan's
//! stages. A leaf holds the entries of one block for one keyspace. Tables never change and their numbers are never
//! reused, so a cached leaf stays valid. It holds all versions, so that every view walks the same leaves.

use crate::blocks::{self, BlockId, BlockPlace, Blocks, Entry};
use crate::key;
use bunko_store::{KeyspaceId, Location, Result};
use foldhash::fast::RandomState;
use lsm_tree::{SeqNo, Table, TableId};
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use rustc_hash::FxHashSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Expected size of a leaf in bytes, for sizing the cache.
const LEAF_BYTES_USUAL: u64 = 6 * 1024;
/// The cache is told of one use in this many of a leaf through its hint; it keeps the most used leaves longest.
const TOLD_EACH: u8 = 16;

/// One version of a record in a table.
#[derive(Clone, Copy)]
pub(crate) struct LeafEntry {
    pub record: u64,
    pub lsn: SeqNo,
    /// [`DELETED`] for a deletion.
    location: Location,
}

/// Stands for a deletion: no document lies at the last position.
const DELETED: Location = Location { position: u64::MAX, length: 0, checksum: 0 };

impl LeafEntry {
    /// `None` for a deletion.
    pub fn location(&self) -> Option<Location> {
        (self.location != DELETED).then_some(self.location)
    }

    /// A version from a memtable; `None` as location is a deletion.
    pub fn new(record: u64, lsn: SeqNo, location: Option<Location>) -> Self {
        Self { record, lsn, location: location.unwrap_or(DELETED) }
    }

    fn of(entry: &Entry<'_>, key: &[u8], lsn_base: SeqNo) -> Option<Self> {
        let location = entry.value.map_or(Some(DELETED), Location::decode)?;
        Some(Self { record: u64::from_be_bytes(key.try_into().ok()?), lsn: entry.lsn + lsn_base, location })
    }
}

/// Versions of records from a block or a memtable, ordered by record, newest version first.
pub(crate) struct Leaf {
    pub entries: Box<[LeafEntry]>,
    /// The first record. A search begins with it; stored here, it saves an access to the entries, which are elsewhere
    /// in memory.
    first: u64,
    /// Whether more records follow in the next leaf.
    pub behind: Behind,
}

impl Leaf {
    /// A leaf without records.
    pub fn nothing() -> Self {
        Self::new(Vec::new(), Behind::Nothing)
    }

    /// `entries` must be in the order of leaves.
    pub fn new(entries: Vec<LeafEntry>, behind: Behind) -> Self {
        let first = entries.first().map_or(0, |first| first.record);
        Self { entries: entries.into_boxed_slice(), first, behind }
    }

    /// The newest version of a record below `before`.
    pub fn newest_of(&self, record: u64, before: SeqNo) -> InLeaf {
        let versions = self.entries[self.first_of(record)..].iter();
        let mut left = versions.skip_while(|entry| entry.record == record && entry.lsn >= before);
        match left.next() {
            Some(entry) if entry.record == record => InLeaf::Found(*entry),
            Some(_) => InLeaf::Nothing,
            None if self.behind == Behind::Nothing => InLeaf::Nothing,
            None => InLeaf::Behind,
        }
    }

    /// Prefetches the likely entry of a record into the processor's cache.
    pub fn prefetch(&self, record: u64) {
        let guessed = record.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some(entry) = guessed.and_then(|place| self.entries.get(place)) {
            bunko_heap::prefetch_value(entry);
        }
    }

    /// Index of the first entry of the record, or of a later record.
    pub fn first_of(&self, record: u64) -> usize {
        // In most leaves each record has one version and no record between is missing.
        let guessed = record.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        let is_it = |place: usize| self.entries.get(place).is_some_and(|entry| entry.record == record);
        match guessed {
            Some(place) if is_it(place) && !place.checked_sub(1).is_some_and(is_it) => place,
            _ => self.entries.partition_point(|entry| entry.record < record),
        }
    }
}

/// Result of looking a record up in a leaf.
pub(crate) enum InLeaf {
    Found(LeafEntry),
    /// No version of the record below the requested LSN is in this leaf or the next.
    Nothing,
    /// Older versions of the record may stand in the next leaf.
    Behind,
}

/// Whether more records of the keyspace follow a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Perhaps other records of the keyspace follow, from this one on if it is known.
    Records(Option<u64>),
    Nothing,
}

/// A decoded form of a block's entries for one keyspace.
pub(crate) trait OfBlock: Sized + Send + Sync + 'static {
    /// Decodes the keyspace's entries; `lsn_base` is added to their LSNs. `None` for a malformed block.
    fn decode(block: &[u8], keyspace: KeyspaceId, lsn_base: SeqNo) -> Option<Self>;

    /// Bytes that the leaf takes in memory.
    fn memory_bytes(&self) -> u64;
}

impl OfBlock for Leaf {
    fn decode(block: &[u8], keyspace: KeyspaceId, lsn_base: SeqNo) -> Option<Self> {
        let mut entries = Vec::new();
        let is_last = blocks::visit_keyspace(block, keyspace, |entry, key| {
            entries.push(LeafEntry::of(entry, key, lsn_base)?);
            Some(())
        })?;
        let behind = if is_last { Behind::Nothing } else { Behind::Records(None) };
        Some(Self::new(entries, behind))
    }

    fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.entries)) as u64
    }
}

/// A cached leaf, with a count of its uses through hints.
struct Kept<L> {
    hinted: AtomicU8,
    leaf: L,
}

impl<L> Kept<L> {
    fn new(leaf: L) -> Arc<Self> {
        Arc::new(Self { hinted: AtomicU8::new(0), leaf })
    }

    /// Whether this use is reported to the cache: the first one, and then one of every [`TOLD_EACH`].
    fn is_told(&self) -> bool {
        // Two concurrent readers may be counted as one, which does no harm.
        let hinted = self.hinted.load(Ordering::Relaxed);
        self.hinted.store(hinted.wrapping_add(1), Ordering::Relaxed);
        hinted.is_multiple_of(TOLD_EACH)
    }
}

/// A leaf in use. Other readers or the cache may keep it longer, so its memory does not count for the operation.
pub(crate) struct InUse<L>(Option<Arc<Kept<L>>>);

impl<L> InUse<L> {
    /// A leaf that is not cached.
    pub fn made(make: impl FnOnce() -> L) -> Self {
        let _uncounted = bunko_heap::Uncounted::begin();
        Self(Some(Kept::new(make())))
    }
}

impl<L> Clone for InUse<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L> Deref for InUse<L> {
    type Target = L;

    #[inline]
    fn deref(&self) -> &L {
        &self.0.as_deref().expect("only a drop takes it out").leaf
    }
}

impl<L> Drop for InUse<L> {
    fn drop(&mut self) {
        let _uncounted = bunko_heap::Uncounted::begin();
        self.0 = None;
    }
}

/// A block and a keyspace.
type LeafId = (BlockId, KeyspaceId);

#[derive(Clone)]
struct ByMemory;

impl<L: OfBlock> Weighter<LeafId, Arc<Kept<L>>> for ByMemory {
    fn weight(&self, _: &LeafId, kept: &Arc<Kept<L>>) -> u64 {
        kept.leaf.memory_bytes()
    }
}

/// The cache of leaves.
pub(crate) struct Leaves<L> {
    cache: Cache<LeafId, Arc<Kept<L>>, ByMemory, RandomState>,
    pub blocks: Arc<Blocks>,
}

impl<L: OfBlock> Leaves<L> {
    pub fn new(cache_bytes: u64, blocks: &Arc<Blocks>) -> Self {
        let leaves = (cache_bytes / LEAF_BYTES_USUAL).max(1) as usize;
        let lifecycle = DefaultLifecycle::default();
        let cache = Cache::with(leaves, cache_bytes, ByMemory, RandomState::default(), lifecycle);
        Self { cache, blocks: Arc::clone(blocks) }
    }

    /// Drops the leaves of all tables except these.
    pub fn forget_others(&self, tables: &FxHashSet<TableId>) {
        self.cache.retain(|((table, _), _), _| tables.contains(table));
    }

    /// Bytes of the cached leaves.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// The leaf of a block.
    /// # Errors
    /// The tree's error if it cannot read the block, and `Corrupt` if the block is malformed.
    pub fn leaf(&self, place: &BlockPlace, keyspace: KeyspaceId) -> Result<InUse<L>> {
        if let Some(kept) = place.hint::<Kept<L>>(keyspace)
            && !kept.is_told()
        {
            return Ok(InUse(Some(kept)));
        }
        let id = (place.id(), keyspace);
        if let Some(kept) = self.cache.get(&id) {
            place.set_hint(keyspace, &kept);
            return Ok(InUse(Some(kept)));
        }
        // The leaf stays in the cache for later readers, so its memory does not count for the operation.
        let _uncounted = bunko_heap::Uncounted::begin();
        let (table, handle) = (place.table(), place.handle());
        let block = self.blocks.read(table, handle)?;
        let leaf = L::decode(&block.data, keyspace, table.global_seqno())
            .ok_or_else(|| blocks::malformed_block(table, handle.offset()))?;
        let kept = Kept::new(leaf);
        place.set_hint(keyspace, &kept);
        self.cache.insert(id, Arc::clone(&kept));
        Ok(InUse(Some(kept)))
    }
}

impl Leaves<Leaf> {
    /// The newest version of a record below `before` in a table; `None` if the table has none.
    pub fn find(&self, table: &Table, keyspace: KeyspaceId, record: u64, before: SeqNo) -> Result<Option<LeafEntry>> {
        let mut place = BlockPlace::first(&self.blocks, table.clone())?;
        if !key::with_key(keyspace, &record.to_be_bytes(), |key| place.seek(&self.blocks, key))? {
            return Ok(None);
        }
        loop {
            let leaf = self.leaf(&place, keyspace)?;
            let first = leaf.first_of(record);
            for entry in &leaf.entries[first..] {
                if entry.record != record {
                    return Ok(None);
                }
                if entry.lsn < before {
                    return Ok(Some(*entry));
                }
            }
            // Older versions may stand in the next block.
            if leaf.behind == Behind::Nothing || !place.advance(&self.blocks)? {
                return Ok(None);
            }
        }
    }
}
