//! The table of storage engines: a new engine is one crate and one line here.
#![forbid(unsafe_code)]

use bunko_lsm::LsmOptions;
pub use bunko_lsm::{COOLING_BYTES_MAX, Compression};
use bunko_memory::MemoryOptions;
use bunko_mmap::MmapOptions;
use bunko_store::{EngineKind, EngineTable};

/// What the engines are told; each takes its part.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Cache of `lsm` for blocks of documents and of trees, in bytes.
    pub cache_bytes: u64,
    /// How `lsm` compresses documents of collections that do not say otherwise.
    pub compression: Compression,
    /// What `memory` may hold, in bytes.
    pub memory_limit_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, compression: Compression::Lz4, memory_limit_bytes: 1 << 30 }
    }
}

/// An engine by all its names.
pub struct Entry {
    /// Ours.
    pub name: &'static str,
    /// The name of `MongoDB`'s engine whose role it plays, as `storage.engine` and `create` give it.
    pub mongodb_name: &'static str,
    /// The engine with its part of the options.
    pub kind: fn(&EngineOptions) -> EngineKind,
}

/// All engines, the default first.
pub const ENGINES: &[Entry] = &[
    Entry {
        name: bunko_lsm::NAME,
        mongodb_name: "wiredTiger",
        kind: |options| {
            bunko_lsm::kind(LsmOptions { cache_bytes: options.cache_bytes, compression: options.compression })
        },
    },
    Entry {
        name: bunko_memory::NAME,
        mongodb_name: "inMemory",
        kind: |options| bunko_memory::kind(MemoryOptions { limit_bytes: options.memory_limit_bytes }),
    },
    Entry { name: bunko_mmap::NAME, mongodb_name: "mmapv1", kind: |_| bunko_mmap::kind(MmapOptions::default()) },
];

/// The engine that goes by that name, ours or MongoDB's.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENGINES.iter().find(|entry| entry.name == name || entry.mongodb_name == name)
}

/// The engines for a store whose own is `own`.
pub fn table(own: &Entry, options: &EngineOptions) -> EngineTable {
    let others = ENGINES.iter().filter(|entry| entry.name != own.name).map(|entry| (entry.kind)(options));
    EngineTable { own: (own.kind)(options), others: others.collect() }
}
