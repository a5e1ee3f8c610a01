//! The program's allocator, and an allocator that counts each thread's memory.
//!
//! The memory of an operation is allocated in many places: expressions, accumulators, sorts and replies. Counting in
//! each of them would miss one sooner or later. The allocator misses nothing, and costs an addition for each call.
//!
//! **Invariant:** counting never fails and never allocates.
#![allow(unsafe_code)]

mod large;
mod mimalloc;
mod prefetch;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

pub use mimalloc::Mimalloc;
pub use prefetch::{prefetch, prefetch_value};

thread_local! {
    static TAKEN_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated minus those that it has freed, since it began. One thread may free memory of
/// another, so only differences on one thread are meaningful. Always 0 unless the program's allocator is a [`Counting`]
/// one.
#[inline]
pub fn taken_bytes() -> i64 {
    TAKEN_BYTES.get()
}

/// While it lives, this thread's allocations are not counted, because they are for shared structures such as a
/// memtable.
#[must_use]
pub struct Uncounted {
    before: i64,
}

impl Uncounted {
    /// Stops counting what this thread allocates and frees, until the result is dropped.
    #[inline]
    pub fn begin() -> Self {
        Self { before: TAKEN_BYTES.get() }
    }
}

impl Drop for Uncounted {
    #[inline]
    fn drop(&mut self) {
        TAKEN_BYTES.set(self.before);
    }
}

/// An allocator that counts the allocations of another one.
pub struct Counting<A>(pub A);

#[inline]
fn count(bytes: i64) {
    TAKEN_BYTES.set(TAKEN_BYTES.get().wrapping_add(bytes));
}

// SAFETY: all requests are passed unchanged to the inner allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { self.0.realloc(pointer, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    #[test]
    fn taken_memory_counts_until_it_is_given_back() {
        let before = taken_bytes();
        let mut bytes = Vec::<u8>::with_capacity(1000);
        assert_eq!(taken_bytes() - before, 1000);
        bytes.reserve_exact(5000);
        assert_eq!(taken_bytes() - before, 5000);
        drop(bytes);
        assert_eq!(taken_bytes(), before);
    }

    #[test]
    fn uncounted_memory_does_not_count() {
        let before = taken_bytes();
        let uncounted = Uncounted::begin();
        let kept = vec![0_u8; 1 << 20];
        drop(uncounted);
        assert_eq!(taken_bytes(), before);
        drop(kept);
    }
}
