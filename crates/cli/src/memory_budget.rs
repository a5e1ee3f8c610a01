//! Division of the memory that the process may use.
//!
//! The engine has its share first: a cache, or the collections of the engine `memory`, and the keys that are not
//! flushed. The rest, without the program's own memory and the allocator's waste, is the budget for clients: messages,
//! operations, transactions, replies.

use bunko_engines::EngineOptions;
use bunko_operation::ServerMemory;
use std::sync::Arc;

/// Maximum number of bytes that engines hold in memory before they are flushed; less with a small cache.
const UNFLUSHED_BYTES_MAX: u64 = 64 << 20;
/// Unflushed bytes are at most one part in this many of the cache.
const UNFLUSHED_CACHE_PART: u64 = 8;
/// The program's own memory, in bytes: code, threads, buffers of the log and of sockets, lists of the engine.
const PROGRAM_BYTES: u64 = 128 << 20;
/// One part in this many of the rest is left to the allocator: for partly free blocks, and for freed memory that has
/// not been returned.
const WASTED_PART: u64 = 4;
/// Clients have at least one part in this many of all memory, whatever the engine has.
const LEAST_PART: u64 = 8;

/// The engine that keeps its collections in memory.
pub const IN_MEMORY: &str = "memory";

/// Bytes that the engine holds in memory before it is flushed.
pub(crate) fn unflushed_bytes(engines: &EngineOptions) -> u64 {
    UNFLUSHED_BYTES_MAX.min(engines.cache_bytes / UNFLUSHED_CACHE_PART)
}

/// The budget for clients in a process that may use `usable` bytes.
pub(crate) fn budget(usable: u64, engine: &str, engines: &EngineOptions) -> Arc<ServerMemory> {
    ServerMemory::new(budget_bytes(usable, engine, engines))
}

fn budget_bytes(usable: u64, engine: &str, engines: &EngineOptions) -> u64 {
    let engine = if engine == IN_MEMORY {
        engines.memory_limit_bytes
    } else {
        // Twice the unflushed bytes, because more are written while a flush runs.
        engines.cache_bytes + 2 * unflushed_bytes(engines)
    };
    let rest = usable.saturating_sub(engine + PROGRAM_BYTES);
    (rest - rest / WASTED_PART).max(usable / LEAST_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// The defaults of `cacheSizeGB` and `inMemorySizeGB`.
    fn options(usable: u64) -> EngineOptions {
        EngineOptions {
            cache_bytes: (usable.saturating_sub(GIB) / 2).max(GIB / 4),
            memory_limit_bytes: (usable / 2).max(GIB / 4),
            ..EngineOptions::default()
        }
    }

    #[test]
    fn all_shares_together_are_less_than_the_memory() {
        for usable in [GIB, 2 * GIB, 4 * GIB, 24 * GIB, 256 * GIB] {
            let options = options(usable);
            for (engine, share) in
                [("lsm", options.cache_bytes + 2 * unflushed_bytes(&options)), (IN_MEMORY, options.memory_limit_bytes)]
            {
                let budget = budget_bytes(usable, engine, &options);
                let all = share + PROGRAM_BYTES + budget;
                assert!(all + budget / 4 <= usable, "{engine}: {all} of {usable}");
                assert!(budget >= usable / 4, "{engine}: {budget} of {usable} for clients");
            }
        }
    }

    #[test]
    fn a_cache_as_large_as_the_memory_leaves_clients_something() {
        let options = EngineOptions { cache_bytes: 2 * GIB, ..EngineOptions::default() };
        assert_eq!(budget_bytes(GIB, "lsm", &options), GIB / 8);
    }
}
