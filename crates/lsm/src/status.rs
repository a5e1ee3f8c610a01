//! The engine's section of `serverStatus`.

use crate::accounts::Balances;
use crate::documents::Documents;
use crate::reclaim::Counters;
use bunko_bson::DocumentBuf;
use lsm_tree::{AbstractTree, AnyTree};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sources of the figures.
pub(crate) struct Status<'a> {
    pub tree: &'a AnyTree,
    pub documents: &'a Documents,
    pub accounts: &'a Balances,
    pub counters: &'a Counters,
    pub cache_bytes: u64,
    pub flushes: u64,
    pub compactions: u64,
    pub pinned_bytes: u64,
    pub unflushed_bytes: u64,
    pub default_compressor: String,
}

impl Status<'_> {
    /// Counters since the start, and gauges; sizes in bytes.
    pub fn document(&self) -> DocumentBuf {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as i64;
        let registry = self.documents.registry.load();
        let extents = registry.extents();
        let of_extents = |bytes: fn(&crate::extents::Extent) -> u64| -> i64 {
            extents.iter().map(|extent| bytes(extent)).sum::<u64>() as i64
        };
        let taken_over = registry.segments();
        let (mut live, mut in_log) = (0, 0);
        for (_, segment, share) in self.accounts.shares() {
            *(if taken_over.contains(&segment) { &mut live } else { &mut in_log }) += share.live;
        }
        let reads = &self.documents.reads;
        let (leaves, key_leaves) = (&self.documents.leaves, &self.documents.key_leaves);
        // The caches of leaves and of key leaves are made from the same blocks, so those count once.
        let of_tables = leaves.cached_bytes() + key_leaves.cached_bytes() + leaves.blocks.cached_bytes();
        let cache = DocumentBuf::new()
            .with("maximumBytes", self.cache_bytes as i64)
            .with("documentsBytes", self.documents.cached_bytes() as i64)
            .with("logBytes", self.documents.kept_log.bytes() as i64)
            .with("treesBytes", (self.tree.tree_config().cache.size() + of_tables) as i64)
            .with("hits", count(&reads.cache_hits))
            .with("misses", count(&reads.cache_misses))
            .with("bytesRead", count(&reads.bytes_read));
        let extents = DocumentBuf::new()
            .with("count", extents.len() as i64)
            .with("fileBytes", of_extents(|extent| extent.file_bytes))
            .with("documentsBytes", of_extents(crate::extents::Extent::documents_bytes))
            .with("liveDocumentsBytes", live as i64)
            .with("written", count(&self.counters.extents_written))
            .with("bytesWritten", count(&self.counters.bytes_written))
            .with("staged", count(&self.counters.extents_staged))
            .with("rewritten", count(&self.counters.extents_rewritten))
            .with("segmentsMoved", count(&self.counters.segments_moved))
            .with("documentsMoved", count(&self.counters.documents_moved))
            .with("documentsLeftBehind", count(&self.counters.documents_left_behind));
        let trees = DocumentBuf::new()
            .with("fileBytes", self.tree.disk_space() as i64)
            .with("tables", self.tree.table_count() as i64)
            .with("pinnedBytes", self.pinned_bytes as i64)
            .with("flushes", self.flushes as i64)
            .with("compactions", self.compactions as i64)
            .with("unflushedBytes", self.unflushed_bytes as i64);
        DocumentBuf::new()
            .with("defaultBlockCompressor", self.default_compressor.as_str())
            .with("cache", &cache)
            .with("extents", &extents)
            .with("liveDocumentsInLogBytes", in_log as i64)
            .with("trees", &trees)
    }
}
