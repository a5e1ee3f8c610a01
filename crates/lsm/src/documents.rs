//! Reads documents from the log, or from the extent that took over their segment.

use crate::extents::{Block, Extent, Registry};
use crate::kept_log::KeptLog;
use crate::key_leaves::KeyLeaf;
use crate::leaves::{Leaf, Leaves};
use arc_swap::ArcSwap;
use bunko_store::{KeyspaceId, Location, Log, LogHandle, Result, StorageError, segment_of};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Usual size of a block in bytes, for sizing the cache.
const BLOCK_BYTES_USUAL: u64 = 16 * 1024;

/// All documents that the engine's trees lead to.
pub(crate) struct Documents {
    log: LogHandle,
    pub registry: ArcSwap<Registry>,
    cache: Cache<BlockId, Arc<Block>, ByMemory>,
    /// Kept parts of the log, for reads of many documents at a time.
    pub kept_log: KeptLog,
    /// Decoded leaves in which scans find documents.
    pub leaves: Arc<Leaves<Leaf>>,
    /// Decoded leaves in which walks of indexes find keys.
    pub key_leaves: Arc<Leaves<KeyLeaf>>,
    pub reads: Reads,
}

/// Counters of reads from extents since the start.
#[derive(Default)]
pub(crate) struct Reads {
    pub cache_hits: AtomicU64,
    pub cache_misses: AtomicU64,
    pub bytes_read: AtomicU64,
}

/// An extent's number and a block's number in it. Extent numbers are never reused.
type BlockId = (u64, u32);

#[derive(Clone)]
struct ByMemory;

impl Weighter<BlockId, Arc<Block>> for ByMemory {
    fn weight(&self, _: &BlockId, block: &Arc<Block>) -> u64 {
        block.memory_bytes()
    }
}

/// Where a document is stored at present.
pub(crate) enum Home {
    Log,
    Extent(Arc<Extent>),
}

impl Documents {
    pub fn new(
        log: LogHandle,
        registry: Registry,
        cache_bytes: u64,
        kept_log: KeptLog,
        leaves: Arc<Leaves<Leaf>>,
        key_leaves: Arc<Leaves<KeyLeaf>>,
    ) -> Self {
        let blocks = (cache_bytes / BLOCK_BYTES_USUAL).max(1) as usize;
        Self {
            log,
            registry: ArcSwap::from_pointee(registry),
            cache: Cache::with_weighter(blocks, cache_bytes, ByMemory),
            kept_log,
            leaves,
            key_leaves,
            reads: Reads::default(),
        }
    }

    pub fn log(&self) -> &Arc<Log> {
        self.log.get().expect("views are taken once the log is open")
    }

    /// Bytes of blocks in the cache.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// Reads a document into `into` (cleared first).
    pub fn read(&self, keyspace: KeyspaceId, location: Location, into: &mut Vec<u8>) -> Result<()> {
        loop {
            if let Some(extent) = self.registry.load().of_segment(segment_of(location.position)) {
                return self.read_from(extent, keyspace, location, into);
            }
            match self.log().read(location, into) {
                Err(error) => self.unless_moved(location, error)?,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// `Ok` if the document has moved to an extent, and its segment was removed, since the reader looked for it: the
    /// reader then looks again. Otherwise `error`.
    pub fn unless_moved(&self, location: Location, error: StorageError) -> Result<()> {
        let segment = segment_of(location.position);
        let has_moved = !self.log().has_segment(segment) && self.registry.load().of_segment(segment).is_some();
        if has_moved { Ok(()) } else { Err(error) }
    }

    /// Where the document at a location is stored at present.
    pub fn home(&self, location: Location) -> Home {
        let extent = self.registry.load().of_segment(segment_of(location.position)).cloned();
        extent.map_or(Home::Log, Home::Extent)
    }

    fn read_from(&self, extent: &Extent, keyspace: KeyspaceId, location: Location, into: &mut Vec<u8>) -> Result<()> {
        let number = block_number(extent, keyspace, location)?;
        let block = self.block(extent, number)?;
        into.clear();
        into.extend_from_slice(document(&block, extent, number, location)?);
        Ok(())
    }

    /// A block, from the cache if it is there. Scans put their blocks into the cache too: blocks that were used once
    /// leave it before blocks that are used again.
    pub fn block(&self, extent: &Extent, number: usize) -> Result<Arc<Block>> {
        let id = (extent.number, number as u32);
        if let Some(block) = self.cache.get(&id) {
            self.reads.cache_hits.fetch_add(1, Ordering::Relaxed);
            return Ok(block);
        }
        // The block stays in the cache for later readers, so its memory does not count for the operation.
        let _uncounted = bunko_heap::Uncounted::begin();
        let block = self.load(extent, number)?;
        self.cache.insert(id, Arc::clone(&block));
        Ok(block)
    }

    /// Drops the cached blocks of an extent that was replaced, so that no new reader finds it.
    pub fn forget(&self, extent: &Extent) {
        for (number, _) in extent.blocks() {
            self.cache.remove(&(extent.number, number as u32));
        }
    }

    fn load(&self, extent: &Extent, number: usize) -> Result<Arc<Block>> {
        self.reads.cache_misses.fetch_add(1, Ordering::Relaxed);
        self.reads.bytes_read.fetch_add(extent.stored_bytes(number), Ordering::Relaxed);
        extent.read_block(number).map(Arc::new)
    }
}

/// The number of the extent's block that must have the document.
pub(crate) fn block_number(extent: &Extent, keyspace: KeyspaceId, location: Location) -> Result<usize> {
    extent.block_of(keyspace, location.position).ok_or_else(|| StorageError::Corrupt {
        file: extent.path.clone(),
        offset_bytes: 0,
        found: format!("no block for the document from log position {}", location.position),
    })
}

/// The document, which must be in the block.
pub(crate) fn document<'b>(block: &'b Block, extent: &Extent, number: usize, location: Location) -> Result<&'b [u8]> {
    block.document(location).ok_or_else(|| not_in_block(extent, number, location))
}

/// The error for a block that lacks its document.
pub(crate) fn not_in_block(extent: &Extent, number: usize, location: Location) -> StorageError {
    extent.corrupt(number, &format!("no document from log position {}", location.position))
}
