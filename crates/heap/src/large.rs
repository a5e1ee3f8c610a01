//! Large blocks, which are allocated from the system and returned to it.
//!
//! When another thread frees a block, mimalloc keeps it until the thread that allocated it asks for memory again.
//! Replies of many megabytes are allocated by a command's thread and freed by a connection's thread. The replies of 200
//! clients stayed with idle threads in this way, and a server limited to 1 GiB was killed although its clients had read
//! all of them.

use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};
use std::ptr;

/// Minimum length of a large block in bytes. Clearing its pages takes less time than filling them.
pub(crate) const LARGE_BYTES: usize = 512 * 1024;
/// Alignment of all blocks from the system.
const PAGE_BYTES: usize = 4096;

/// Whether a block with that size and alignment is a large block.
#[inline]
pub(crate) fn is_large(size: usize, alignment: usize) -> bool {
    size >= LARGE_BYTES && alignment <= PAGE_BYTES
}

/// Allocates a block of zeros; null if the system has no memory.
pub(crate) fn take(size: usize) -> *mut u8 {
    // SAFETY: a new mapping touches no other.
    let taken = unsafe { mmap_anonymous(ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    taken.map_or(ptr::null_mut(), <*mut _>::cast)
}

/// Frees a large block.
///
/// # Safety
/// The block was [`take`]n with that size, and is not used any more.
pub(crate) unsafe fn give_back(start: *mut u8, size: usize) {
    // SAFETY: as the caller guarantees. An own mapping can always be removed.
    let _ = unsafe { munmap(start.cast(), size) };
}

/// Resizes a large block, and moves it if necessary; null if the system has no memory.
///
/// # Safety
/// The block was [`take`]n with the size `before`, and is not used any more unless null is returned.
pub(crate) unsafe fn resize(start: *mut u8, before: usize, after: usize) -> *mut u8 {
    // SAFETY: as the caller guarantees.
    let moved = unsafe { mremap(start.cast(), before, after, MremapFlags::MAYMOVE) };
    moved.map_or(ptr::null_mut(), <*mut _>::cast)
}
