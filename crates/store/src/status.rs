//! Statistics of a store: counters, sizes, and the status of its engines.

use crate::{DiskReserve, Engine, KeyspaceId, KeyspaceStatistics, LogStatistics, Space, Store};
use bunko_bson::DocumentBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Counters of the whole store.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct StoreStatistics {
    pub log: LogStatistics,
    pub checkpoints: u64,
    pub last_checkpoint_ms: u64,
    pub longest_checkpoint_ms: u64,
    pub unflushed_bytes: u64,
    pub engines_bytes: u64,
    /// Writes that were held back because the engine's flush did not keep up.
    pub stalled_writes: u64,
    /// Disk that is reserved for writes that make room.
    pub reserve: DiskReserve,
}

impl Store {
    /// Statistics of a keyspace.
    pub fn keyspace_statistics(&self, keyspace: KeyspaceId) -> KeyspaceStatistics {
        self.statistics.keyspace(keyspace)
    }

    /// Number of records of a record store.
    pub fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.statistics.entries(keyspace)
    }

    /// Space that keyspaces take, in the order given. An engine goes over all its files once per call, however many
    /// keyspaces are asked for: ask for all at once.
    pub fn space(&self, keyspaces: &[KeyspaceId]) -> Vec<Space> {
        let with_statistics = |keyspace| (keyspace, self.statistics.keyspace(keyspace));
        let mut spaces = vec![Space::default(); keyspaces.len()];
        let mut open: Vec<(usize, Arc<dyn Engine>)> =
            keyspaces.iter().map(|keyspace| self.engines.of(*keyspace)).enumerate().collect();
        while let Some((_, engine)) = open.first().cloned() {
            let (own, rest): (Vec<_>, _) = open.into_iter().partition(|(_, other)| Arc::ptr_eq(other, &engine));
            let asked: Vec<_> = own.iter().map(|(position, _)| with_statistics(keyspaces[*position])).collect();
            for ((position, _), space) in own.iter().zip(engine.space(&asked)) {
                spaces[*position] = space;
            }
            open = rest;
        }
        spaces
    }

    /// Status of the open engines, by name.
    pub fn engine_status(&self) -> Vec<(&'static str, DocumentBuf)> {
        self.engines.all().iter().map(|engine| (engine.name(), engine.status())).collect()
    }

    /// Counters of the whole store.
    pub fn statistics(&self) -> StoreStatistics {
        StoreStatistics {
            log: self.journal.statistics(),
            checkpoints: self.checkpointer.count(),
            last_checkpoint_ms: self.checkpointer.last_ms(),
            longest_checkpoint_ms: self.checkpointer.longest_ms(),
            unflushed_bytes: self.unflushed_bytes(),
            engines_bytes: self.engines.all().iter().map(|engine| engine.size_bytes()).sum(),
            stalled_writes: self.stalled_writes.load(Ordering::Relaxed),
            reserve: self.disk.reserve(),
        }
    }
}
