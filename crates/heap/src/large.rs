//! Large blocks, which come from the system and go back to it.
//!
//! mimalloc keeps a block that another thread gives back until the thread that took it asks for memory again. Replies of many
//! megabytes are made by a command's thread and given back by a connection's: those of 200 clients stayed with threads that
//! rested, and killed a server in 1 GiB whose clients had read all of them.

use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};
use std::ptr;

/// From that length on, in bytes. To have its pages cleared takes less time than to fill them.
pub(crate) const LARGE_BYTES: usize = 512 * 1024;
/// The alignment of all that the system gives.
const PAGE_BYTES: usize = 4096;

/// Whether a block is such a one.
#[inline]
pub(crate) fn is_large(size: usize, alignment: usize) -> bool {
    size >= LARGE_BYTES && alignment <= PAGE_BYTES
}

/// A block of zeros; null where the system has none.
pub(crate) fn take(size: usize) -> *mut u8 {
    // SAFETY: a new mapping touches no other.
    let taken = unsafe { mmap_anonymous(ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    taken.map_or(ptr::null_mut(), <*mut _>::cast)
}

/// Gives one back.
///
/// # Safety
/// It was [`take`]n with that size, and is used no more.
pub(crate) unsafe fn give_back(start: *mut u8, size: usize) {
    // SAFETY: the caller's. A mapping of one's own can always go.
    let _ = unsafe { munmap(start.cast(), size) };
}

/// Makes one shorter or longer, and moves it where it must; null where the system has no room.
///
/// # Safety
/// It was [`take`]n with the size `before`, and is used no more unless null comes back.
pub(crate) unsafe fn resize(start: *mut u8, before: usize, after: usize) -> *mut u8 {
    // SAFETY: the caller's.
    let moved = unsafe { mremap(start.cast(), before, after, MremapFlags::MAYMOVE) };
    moved.map_or(ptr::null_mut(), <*mut _>::cast)
}
