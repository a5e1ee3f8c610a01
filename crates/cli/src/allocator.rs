//! The memory allocator of the whole program.
#![allow(unsafe_code)]

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc.h, for which the bindings have no name: for how many milliseconds memory is free
/// before it goes back to the system; below 0 it never does.
const PURGE_DELAY: mi_option_t = 15;

/// Keeps what is freed, for a process that ends when its work is done: it needs the same memory again, which the system
/// would clear first.
pub(crate) fn keep_freed_memory() {
    // SAFETY: takes two numbers, and is made to be called at any time.
    unsafe { mi_option_set(PURGE_DELAY, -1) };
}

/// Takes memory from the system in pages of 4 KiB, for processes whose slowest moments count: to clear a page of 2 MiB
/// holds up all that the thread has to do, for up to milliseconds in a virtual machine.
pub(crate) fn use_small_pages() {
    // A kernel without large pages refuses, and has none to use.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_delay() {
        // SAFETY: takes a number.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        // What mimalloc has by default; no other option has.
        assert_eq!(delay(), 1000);
        keep_freed_memory();
        assert_eq!(delay(), -1);
    }

    #[test]
    fn large_pages_are_off() {
        use_small_pages();
        assert!(rustix::thread::transparent_huge_pages_are_disabled().expect("a kernel that has them"));
    }
}
