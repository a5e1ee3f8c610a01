//! The table of storage engines: a new engine is one crate and one line here, and must pass the tests of
//! `crates/conformance`.
#![forbid(unsafe_code)]

use bunko_lsm::LsmOptions;
pub use bunko_lsm::{COOLING_BYTES_MAX, Compression};
use bunko_memory::MemoryOptions;
use bunko_mmap::MmapOptions;
use bunko_store::{EngineKind, EngineTable};

/// Options of all engines; each takes its own part.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Cache of `lsm` for blocks of documents and of trees, in bytes.
    pub cache_bytes: u64,
    /// Compression by `lsm` of documents in collections that do not choose one.
    pub compression: Compression,
    /// Maximum memory of `memory`, in bytes.
    pub memory_limit_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, compression: Compression::Lz4, memory_limit_bytes: 1 << 30 }
    }
}

/// An engine with its names.
pub struct Entry {
    /// Our name.
    pub name: &'static str,
    /// Name of the `MongoDB` engine whose role it plays, for `storage.engine` and `create`.
    pub mongodb_name: &'static str,
    /// Makes the engine's kind from its part of the options.
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

/// The engine with that name, ours or MongoDB's.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENGINES.iter().find(|entry| entry.name == name || entry.mongodb_name == name)
}

/// The engine table of a store with `own` as its own engine.
pub fn table(own: &Entry, options: &EngineOptions) -> EngineTable {
    let others = ENGINES.iter().filter(|entry| entry.name != own.name).map(|entry| (entry.kind)(options));
    EngineTable { own: (own.kind)(options), others: others.collect() }
}
