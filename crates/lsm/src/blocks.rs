//! Reads the blocks of tables: their positions, and the entries in them.
//!
//! lsm-tree decodes an entry in a few hundred steps, and searches its index of blocks by decoding an entry at each
//! step. Here a list of blocks is decoded once and then searched by comparing bytes, and a block is decoded as fast as
//! its bytes allow.
//!
//! ```text
//! block    entries; an index of some of them, which is not read here; trailer
//! entry    kind, u8: 0 a value, 1 or 2 a deletion; LSN, varint; the key; for a value, its length, varint, and bytes
//!          each <interval>-th entry has a whole key: length, varint; bytes
//!          other entries share a prefix with it: bytes in common, varint; length of the rest, varint; the rest
//! trailer  31 bytes: the first is <interval>, the last four the number of entries, little-endian
//! ```

use crate::hints::{HINT_BYTES, Hints};
use crate::keys::{Cut, Keys};
use crate::tree_files::TreeFiles;
use bunko_store::{KeyspaceId, Result, StorageError, files, varint};
use lsm_tree::table::block::BlockType;
use lsm_tree::table::{Block, BlockHandle, BlockOffset, IndexBlock};
use lsm_tree::{CompressionType, SeqNo, Table, TableId};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rustc_hash::FxHashSet;
use std::any::Any;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// Expected size of a block with entries, in bytes, for sizing the cache.
const BLOCK_BYTES_USUAL: u64 = 4 * 1024;
/// Maximum weight of the cached lists, in bytes.
const LISTS_BYTES: u64 = 64 << 20;
/// Maximum weight of one list in the cache. A list of long keys may have many megabytes; if it weighed as much, the
/// cache would not take it, and each reader would decode it again.
const LIST_WEIGHT_MAX: u64 = LISTS_BYTES / 64;
/// Expected size of a list, in bytes, for sizing the cache.
const LIST_BYTES_USUAL: u64 = 16 * 1024;

const TRAILER_BYTES: usize = 31;
const VALUE: u8 = 0;
const DELETIONS: [u8; 2] = [1, 2];

/// An entry of a block; the key has the tree's form.
pub(crate) struct Entry<'a> {
    pub key: &'a [u8],
    pub lsn: SeqNo,
    /// `None` for a deletion.
    pub value: Option<&'a [u8]>,
}

/// Shows the entries of a block in their order, until the visitor breaks off or fails. `None` if it fails or the block
/// is malformed.
fn visit(block: &[u8], mut visit: impl FnMut(Entry<'_>) -> Option<ControlFlow<()>>) -> Option<()> {
    let (mut left, trailer) = block.split_at_checked(block.len().checked_sub(TRAILER_BYTES)?)?;
    let interval = u32::from(*trailer.first()?);
    let count = u32::from_le_bytes(*trailer.last_chunk()?);
    let (mut base, mut key): (&[u8], Vec<u8>) = (&[], Vec::new());
    for number in 0..count {
        let (kind, behind) = left.split_first()?;
        left = behind;
        let lsn = varint::take(&mut left)?;
        let key = if number.checked_rem(interval)? == 0 {
            base = take_sized(&mut left)?;
            base
        } else {
            let shared = usize::try_from(varint::take(&mut left)?).ok()?;
            key.clear();
            key.extend_from_slice(base.get(..shared)?);
            key.extend_from_slice(take_sized(&mut left)?);
            &key
        };
        let value = match *kind {
            VALUE => Some(take_sized(&mut left)?),
            kind if DELETIONS.contains(&kind) => None,
            _ => return None,
        };
        if visit(Entry { key, lsn, value })?.is_break() {
            break;
        }
    }
    Some(())
}

/// Shows the entries of one keyspace, with their keys within it. Returns whether the block also has entries of a later
/// keyspace; `None` if `show` fails or the block is malformed.
pub(crate) fn visit_keyspace(
    block: &[u8],
    keyspace: KeyspaceId,
    mut show: impl FnMut(&Entry<'_>, &[u8]) -> Option<()>,
) -> Option<bool> {
    let prefix = keyspace.0.to_be_bytes();
    let mut is_last = false;
    visit(block, |entry| {
        let (own, key) = entry.key.split_first_chunk()?;
        match own.cmp(&prefix) {
            Ordering::Less => {}
            Ordering::Equal => show(&entry, key)?,
            Ordering::Greater => {
                is_last = true;
                return Some(ControlFlow::Break(()));
            }
        }
        Some(ControlFlow::Continue(()))
    })?;
    Some(is_last)
}

fn take_sized<'a>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(left)?).ok()?;
    let (taken, behind) = left.split_at_checked(length)?;
    *left = behind;
    Some(taken)
}

/// Consecutive blocks of one table.
pub(crate) struct BlockList {
    last_keys: Keys,
    handles: Vec<BlockHandle>,
    hints: Hints,
}

impl BlockList {
    fn decode(block: Block) -> Self {
        let block = IndexBlock::new(block);
        let (mut last_keys, mut handles) = (Keys::default(), Vec::new());
        for item in block.iter() {
            last_keys.push(&block.as_slice()[item.end_key.0..item.end_key.1]);
            handles.push(BlockHandle::new(item.offset, item.size));
        }
        last_keys.complete();
        handles.shrink_to_fit();
        Self { last_keys, handles, hints: Hints::default() }
    }

    fn memory_bytes(&self) -> u64 {
        let of_block = size_of::<BlockHandle>() + HINT_BYTES;
        (size_of::<Self>() + of_block * self.handles.len()) as u64 + self.last_keys.memory_bytes()
    }

    /// The first block, from `from` on, that may have `key` or a later key.
    fn find(&self, from: usize, key: &[u8]) -> usize {
        self.last_keys.find_near(from, Cut::Before(key))
    }
}

/// A table and the offset of a block in it.
pub(crate) type BlockId = (TableId, u64);

#[derive(Clone)]
struct ByMemory;

impl Weighter<BlockId, Arc<BlockList>> for ByMemory {
    fn weight(&self, _: &BlockId, list: &Arc<BlockList>) -> u64 {
        list.memory_bytes().min(LIST_WEIGHT_MAX)
    }
}

impl Weighter<BlockId, Block> for ByMemory {
    fn weight(&self, _: &BlockId, block: &Block) -> u64 {
        (size_of::<Block>() + block.data.len()) as u64
    }
}

/// Reads and caches blocks of tables. Tables never change, and their numbers are never reused.
pub(crate) struct Blocks {
    /// Blocks with entries, decompressed. The tree's own cache is not used, because it keeps blocks of removed tables
    /// until it is full.
    entries: Cache<BlockId, Block, ByMemory>,
    lists: Cache<BlockId, Arc<BlockList>, ByMemory>,
    /// Bytes of the cached lists. Lists that the cache has evicted since the last [`Self::forget_others`] count too.
    lists_bytes: AtomicU64,
    pub files: Arc<TreeFiles>,
}

impl Blocks {
    pub fn new(cache_bytes: u64, files: &Arc<TreeFiles>) -> Self {
        let blocks = (cache_bytes / BLOCK_BYTES_USUAL).max(1) as usize;
        let entries = Cache::with_weighter(blocks, cache_bytes, ByMemory);
        let lists = (LISTS_BYTES / LIST_BYTES_USUAL) as usize;
        let lists = Cache::with_weighter(lists, LISTS_BYTES, ByMemory);
        Self { entries, lists, lists_bytes: AtomicU64::new(0), files: Arc::clone(files) }
    }

    /// Drops the cached blocks of all tables except these.
    pub fn forget_others(&self, tables: &FxHashSet<TableId>) {
        self.entries.retain(|(table, _), _| tables.contains(table));
        self.lists.retain(|(table, _), _| tables.contains(table));
        let left = self.lists.iter().map(|(_, list)| list.memory_bytes()).sum();
        self.lists_bytes.store(left, atomic::Ordering::Relaxed);
    }

    /// Bytes of the cached lists.
    pub fn lists_bytes(&self) -> u64 {
        self.lists_bytes.load(atomic::Ordering::Relaxed)
    }

    /// Bytes of the cached blocks with entries.
    pub fn cached_bytes(&self) -> u64 {
        self.entries.weight()
    }

    fn list(&self, table: &Table, handle: BlockHandle) -> Result<Arc<BlockList>> {
        let id = (table.id(), *handle.offset());
        if let Some(list) = self.lists.get(&id) {
            return Ok(list);
        }
        // Other readers of the list wait meanwhile: a list of long keys takes much memory while it is decoded.
        self.lists.get_or_insert_with(&id, || {
            // The list stays in the cache for later readers, so its memory does not count for the operation.
            let _uncounted = bunko_heap::Uncounted::begin();
            let block = self.load(table, handle, BlockType::Index, table.metadata.index_block_compression)?;
            let list = BlockList::decode(block);
            self.lists_bytes.fetch_add(list.memory_bytes(), atomic::Ordering::Relaxed);
            Ok(Arc::new(list))
        })
    }

    /// Reads a block with entries; [`visit_keyspace`] shows them.
    pub fn read(&self, table: &Table, handle: BlockHandle) -> Result<Block> {
        let id = (table.id(), *handle.offset());
        if let Some(block) = self.entries.get(&id) {
            return Ok(block);
        }
        let block = self.load(table, handle, BlockType::Data, table.metadata.data_block_compression)?;
        self.entries.insert(id, block.clone());
        Ok(block)
    }

    fn load(&self, table: &Table, handle: BlockHandle, kind: BlockType, compression: CompressionType) -> Result<Block> {
        let file = files::open(&table.path)?;
        let block = Block::from_file(&file, handle, compression).map_err(|error| self.files.error(error))?;
        if block.header.block_type == kind { Ok(block) } else { Err(malformed_block(table, handle.offset())) }
    }
}

/// The error for a malformed block.
pub(crate) fn malformed_block(table: &Table, offset: BlockOffset) -> StorageError {
    StorageError::Corrupt { file: (*table.path).clone(), offset_bytes: *offset, found: "a malformed block".into() }
}

/// A block of a table, as a position from which to go to later blocks.
pub(crate) struct BlockPlace {
    table: Table,
    /// The lists and the number of the present list, if the table's blocks are in several lists.
    parts: Option<(Arc<BlockList>, usize)>,
    list: Arc<BlockList>,
    number: usize,
}

impl BlockPlace {
    /// The first block of a table.
    pub fn first(blocks: &Blocks, table: Table) -> Result<Self> {
        let top = blocks.list(&table, table.regions.tli)?;
        let (parts, list) = if table.regions.index.is_none() {
            (None, top)
        } else {
            let first = top.handles.first().ok_or_else(|| malformed_block(&table, table.regions.tli.offset()))?;
            let list = blocks.list(&table, *first)?;
            (Some((top, 0)), list)
        };
        Ok(Self { table, parts, list, number: 0 })
    }

    /// Goes to the first block that may have `key` or a later key; returns whether there is one. `key` is in the tree's
    /// form, and must not be smaller than any key sought before.
    pub fn seek(&mut self, blocks: &Blocks, key: &[u8]) -> Result<bool> {
        if let Some((parts, part)) = &mut self.parts {
            let found = parts.find(*part, key);
            let Some(handle) = parts.handles.get(found) else { return Ok(false) };
            if found != *part {
                self.list = blocks.list(&self.table, *handle)?;
                (*part, self.number) = (found, 0);
            }
        }
        let found = self.list.find(self.number, key);
        let is_there = found < self.list.handles.len();
        if is_there {
            self.number = found;
        }
        Ok(is_there)
    }

    /// Goes to the next block; returns whether there is one.
    pub fn advance(&mut self, blocks: &Blocks) -> Result<bool> {
        if self.number + 1 < self.list.handles.len() {
            self.number += 1;
            return Ok(true);
        }
        let Some((parts, part)) = &mut self.parts else { return Ok(false) };
        let Some(handle) = parts.handles.get(*part + 1) else { return Ok(false) };
        self.list = blocks.list(&self.table, *handle)?;
        (*part, self.number) = (*part + 1, 0);
        Ok(true)
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The block's table and offset.
    pub fn id(&self) -> BlockId {
        (self.table.id(), *self.handle().offset())
    }

    /// The decoded form of the block, if its hint still leads to one in memory.
    pub fn hint<T: Any + Send + Sync>(&self, keyspace: KeyspaceId) -> Option<Arc<T>> {
        self.list.hints.get(self.number, keyspace)
    }

    /// Remembers the decoded form of the block in its hint.
    pub fn set_hint<T: Any + Send + Sync>(&self, keyspace: KeyspaceId, made: &Arc<T>) {
        self.list.hints.set((self.number, self.list.handles.len()), keyspace, made);
    }

    /// The block's offset and size in the table.
    pub fn handle(&self) -> BlockHandle {
        self.list.handles[self.number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Shown = (Vec<u8>, SeqNo, Option<Vec<u8>>);

    fn put(block: &mut Vec<u8>, bytes: &[u8]) {
        varint::put(block, bytes.len() as u64);
        block.extend_from_slice(bytes);
    }

    /// A block of keyspaces 5 and 6, in which every second key is whole.
    fn block() -> (Vec<u8>, Vec<Shown>) {
        let mut entries: Vec<Shown> = Vec::new();
        for number in 0..9_u8 {
            let key = [[0, 0, 0, 5 + number / 6].as_slice(), b"key", &[number; 3]].concat();
            let value = (number % 4 != 3).then(|| vec![number; usize::from(number)]);
            entries.push((key, 1000 - u64::from(number), value));
        }
        let (mut block, mut base) = (Vec::new(), Vec::new());
        for (number, (key, lsn, value)) in entries.iter().enumerate() {
            block.push(if value.is_some() { VALUE } else { DELETIONS[0] });
            varint::put(&mut block, *lsn);
            if number % 2 == 0 {
                put(&mut block, key);
                base.clone_from(key);
            } else {
                let shared = base.iter().zip(key).take_while(|(one, other)| one == other).count();
                varint::put(&mut block, shared as u64);
                put(&mut block, &key[shared..]);
            }
            if let Some(value) = value {
                put(&mut block, value);
            }
        }
        block.extend_from_slice(&[0xff, 7, 7, 7]);
        let mut trailer = [0; TRAILER_BYTES];
        trailer[0] = 2;
        trailer[TRAILER_BYTES - 4..].copy_from_slice(&(entries.len() as u32).to_le_bytes());
        block.extend_from_slice(&trailer);
        (block, entries)
    }

    fn shown(block: &[u8], keyspace: u32) -> Option<(Vec<Shown>, bool)> {
        let mut shown = Vec::new();
        let is_last = visit_keyspace(block, KeyspaceId(keyspace), |entry, key| {
            assert_eq!(&entry.key[4..], key);
            shown.push((entry.key.to_vec(), entry.lsn, entry.value.map(<[u8]>::to_vec)));
            Some(())
        })?;
        Some((shown, is_last))
    }

    #[test]
    fn a_block_shows_the_entries_of_each_keyspace() {
        let (block, entries) = block();
        assert_eq!(shown(&block, 5), Some((entries[..6].to_vec(), true)));
        assert_eq!(shown(&block, 6), Some((entries[6..].to_vec(), false)));
        assert_eq!(shown(&block, 4), Some((Vec::new(), true)));
        assert_eq!(shown(&block, 7), Some((Vec::new(), false)));
    }

    #[test]
    fn foreign_bytes_are_refused_or_shown_but_never_believed() {
        let (block, _) = block();
        for length in 0..block.len() {
            let _ = shown(&block[..length], 6);
        }
        for place in 0..block.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = block.clone();
                damaged[place] = byte;
                let _ = shown(&damaged, 6);
            }
        }
        let mut without_interval = block.clone();
        without_interval[block.len() - TRAILER_BYTES] = 0;
        assert_eq!(shown(&without_interval, 5), None);
        assert_eq!(shown(&block[1..], 5), None);
    }
}
