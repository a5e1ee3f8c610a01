//! The stacks of threads that run operations.
//!
//! The streams of a pipeline call each other, so a pipeline of a thousand stages needs a large stack, and pipelines inside
//! its stages add to that. A stack that overflows ends the server, so room is checked before a pipeline inside another one
//! is opened.

use bunko_errors::{ErrorCode, Failure, Result};
use std::cell::Cell;
use std::ptr;

/// Size of the stack of each thread that runs commands, in bytes. The kernel maps only the pages that are used. Without
/// optimization, calls take several times as much.
pub const THREAD_STACK_BYTES: usize = if cfg!(debug_assertions) { 64 << 20 } else { 24 << 20 };

/// Stack that the stream of one stage may take, in bytes. `$group` takes 11 kB in an optimized build.
const STREAM_STACK_BYTES: usize = if cfg!(debug_assertions) { 48 << 10 } else { 16 << 10 };

/// Number of stages whose stack does not count as memory of the operation: each thread has as much in use anyway.
const STAGES_FREE: usize = 64;

/// Stack that is left for all other calls, in bytes.
const RESERVE_BYTES: usize = 1 << 20;

thread_local! {
    /// The highest address of the thread's stack that was seen.
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// The stack in use beyond the highest call of this function on this thread, in bytes. The outermost stream of a pipeline
/// calls it, so that inner ones know how deep they are.
#[inline(never)]
pub(crate) fn used_bytes() -> usize {
    let marker = 0_u8;
    let here = ptr::from_ref(&marker).addr();
    let top = TOP.get().max(here);
    TOP.set(top);
    top - here
}

/// Checks that this thread's stack has room for the streams of this many stages.
/// # Errors
/// `ExceededMemoryLimit`.
pub(crate) fn check_stack(stages: usize) -> Result<()> {
    let used = used_bytes();
    if used.saturating_add(stages.saturating_mul(STREAM_STACK_BYTES)) <= THREAD_STACK_BYTES - RESERVE_BYTES {
        return Ok(());
    }
    let message = format!(
        "a pipeline of {stages} stages inside others needs more of the thread's stack than is left: {used} of \
         {THREAD_STACK_BYTES} bytes are used"
    );
    Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message))
}

/// The stack of many stages as memory of the operation, in bytes.
pub(crate) fn counted_bytes(stages: usize) -> usize {
    stages.saturating_sub(STAGES_FREE) * STREAM_STACK_BYTES
}

/// Heap memory that counts in place of the stack while a pipeline is open. It is never written, so the kernel maps no pages.
pub(crate) struct CountedStack {
    _block: Vec<u8>,
}

impl CountedStack {
    pub fn of(stages: usize) -> Self {
        Self { _block: Vec::with_capacity(counted_bytes(stages)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks once this much of the stack is used.
    #[inline(never)]
    fn check_at(used: usize, stages: usize) -> Result<()> {
        let block = std::hint::black_box([1_u8; 16 << 10]);
        let checked = if used_bytes() >= used { check_stack(stages) } else { check_at(used, stages) };
        assert_eq!(std::hint::black_box(&block)[stages % block.len()], 1);
        checked
    }

    #[test]
    fn stages_beyond_the_rest_of_the_stack_are_refused() {
        let thread = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES);
        let checks = thread.spawn(|| {
            used_bytes();
            let half = THREAD_STACK_BYTES / 2;
            let stages = half / STREAM_STACK_BYTES;
            let cases = [(0, 0), (0, stages), (0, 2 * stages), (half / 2, stages), (half, stages)];
            cases.map(|(used, stages)| check_at(used, stages).err().map(|failure| failure.code()))
        });
        let codes = checks.expect("a thread").join().expect("checked");
        let refused = Some(ErrorCode::EXCEEDED_MEMORY_LIMIT);
        assert_eq!(codes, [None, None, refused, None, refused]);
    }
}
