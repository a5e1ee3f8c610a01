//! Tests how much memory commands use and cursors hold, with a counting allocator and a small budget. The allocator is
//! the whole program's, so they are not part of the binary `all`.

mod idle_cursors;
mod request_shapes;
#[allow(dead_code, reason = "shared with the other tests of commands")]
#[path = "../all/server.rs"]
mod server;
mod shapes;
mod trials;

use bunko_heap::{Counting, taken_bytes};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the memory of each thread, and its peak.
struct Peaking(Counting<System>);

#[global_allocator]
static ALLOCATOR: Peaking = Peaking(Counting(System));

thread_local! {
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: all requests go to the inner allocator unchanged.
unsafe impl GlobalAlloc for Peaking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let block = unsafe { self.0.alloc(layout) };
        PEAK_BYTES.set(PEAK_BYTES.get().max(taken_bytes()));
        block
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // If the block has to move, both blocks exist for a moment.
        PEAK_BYTES.set(PEAK_BYTES.get().max(taken_bytes() + new_size as i64));
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }
}

/// The peak of this thread's memory while `action` ran, in excess of its memory before.
fn peak_bytes<T>(action: impl FnOnce() -> T) -> (usize, T) {
    let before = taken_bytes();
    PEAK_BYTES.set(before);
    let result = action();
    (usize::try_from(PEAK_BYTES.get() - before).unwrap_or(0), result)
}
