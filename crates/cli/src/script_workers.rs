//! Processes for the scripts of clients: this program again, as a worker.

use bunko_javascript::{WORKER_ARGUMENT, WORKER_BYTES, Workers};
use bunko_operation::ServerMemory;
use std::sync::Arc;

/// The running program, even if its file has been replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// Workers may take one part in this many of the memory for clients before they run a script.
const MEMORY_PART: u64 = 4;
/// Minimum and maximum number of workers, whatever the memory.
const WORKERS: std::ops::RangeInclusive<usize> = 8..=128;

/// Whether this process was started as a worker. A worker reads no configuration and has no other arguments.
pub(crate) fn is_one() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER_ARGUMENT)
}

/// The workers of a server with this memory for clients.
pub(crate) fn of_server(memory: &ServerMemory) -> Arc<Workers> {
    Workers::new(OWN_PROGRAM.into(), vec![WORKER_ARGUMENT.into()], most(memory.bytes_max()))
}

fn most(memory_bytes: u64) -> usize {
    let fit = memory_bytes / MEMORY_PART / WORKER_BYTES as u64;
    usize::try_from(fit).unwrap_or(usize::MAX).clamp(*WORKERS.start(), *WORKERS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_memory_carries() {
        assert_eq!((most(0), most(432 << 20), most(1 << 40)), (8, 18, 128));
    }
}
