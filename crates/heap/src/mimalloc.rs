//! Rust's allocator interface over mimalloc, and over the system for large blocks.
//!
//! The crate `mimalloc` passes an alignment with every request, even one that all blocks have anyway. mimalloc then
//! looks only at the first free block. If that does not fit, it takes a larger block and aligns within it, so it never
//! fills the pages of the right size. A quarter of a request's allocations took that path.
use crate::large::{give_back, is_large, resize, take};
use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

/// `MI_MAX_ALIGN_SIZE` in mimalloc/types.h: blocks of at least this length are aligned to it, and shorter blocks to the
/// largest power of two up to their length.
const NATURAL_ALIGNMENT: usize = 16;

/// mimalloc as the program's allocator.
#[derive(Debug)]
pub struct Mimalloc;

/// Whether every block of that size has that alignment anyway.
#[inline]
fn is_natural(size: usize, alignment: usize) -> bool {
    alignment <= NATURAL_ALIGNMENT && alignment <= size
}

// SAFETY: mimalloc keeps the contract of malloc, and `is_natural` is right about its blocks, which a test checks. A
// large block is a mapping of its own, and every call recognises it by its layout.
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            return take(layout.size());
        }
        // SAFETY: any size is allowed, and any power of two as alignment.
        unsafe {
            if is_natural(layout.size(), layout.align()) {
                mi_malloc(layout.size()).cast()
            } else {
                mi_malloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            return take(layout.size());
        }
        // SAFETY: as for `alloc`.
        unsafe {
            if is_natural(layout.size(), layout.align()) {
                mi_zalloc(layout.size()).cast()
            } else {
                mi_zalloc_aligned(layout.size(), layout.align()).cast()
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller got the block from this allocator, and does not use it any more.
        unsafe {
            if is_large(layout.size(), layout.align()) {
                give_back(pointer, layout.size());
            } else {
                mi_free(pointer.cast());
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let (was_large, is_large) = (is_large(layout.size(), layout.align()), is_large(new_size, layout.align()));
        // SAFETY: the caller got the block from this allocator, and does not use it any more unless null is returned.
        unsafe {
            if was_large && is_large {
                resize(pointer, layout.size(), new_size)
            } else if was_large || is_large {
                self.move_block(pointer, layout, new_size)
            } else if is_natural(new_size, layout.align()) {
                mi_realloc(pointer.cast(), new_size).cast()
            } else {
                mi_realloc_aligned(pointer.cast(), new_size, layout.align()).cast()
            }
        }
    }
}

impl Mimalloc {
    /// Moves a block that becomes a large block, or stops being one.
    ///
    /// # Safety
    /// As [`GlobalAlloc::realloc`].
    #[cold]
    unsafe fn move_block(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as the caller guarantees; by the contract of `realloc`, `new_size` with the block's alignment is a
        // valid layout.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, layout.size().min(new_size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates so many blocks of each size that mimalloc takes several pages for small ones.
    #[test]
    fn blocks_are_aligned_as_asked() {
        for size in
            (1..200).chain([1000, 1024, 1030, 4096, 5001, 70_000, 256 << 10, (512 << 10) - 1, 512 << 10, (1 << 21) + 1])
        {
            for alignment in [1, 2, 4, 8, 16, 32, 64, 128, 4096, 8192] {
                let layout = Layout::from_size_align(size, alignment).expect("a layout");
                let larger = Layout::from_size_align(size * 2 + 1, alignment).expect("a layout");
                let mut blocks = Vec::new();
                for block in 0..if size < 200 { 50 } else { 3 } {
                    // SAFETY: no layout is empty, and each block is freed once, with its layout at that time.
                    unsafe {
                        let zeroed = block % 2 == 0;
                        let start = if zeroed { Mimalloc.alloc_zeroed(layout) } else { Mimalloc.alloc(layout) };
                        assert_eq!(start as usize % alignment, 0, "{layout:?}");
                        if zeroed {
                            assert!(
                                std::slice::from_raw_parts(start, size).iter().all(|byte| *byte == 0),
                                "{layout:?}"
                            );
                        }
                        start.write_bytes(7, size);
                        let moved = Mimalloc.realloc(start, layout, larger.size());
                        assert_eq!(moved as usize % alignment, 0, "{layout:?} made larger");
                        assert!(std::slice::from_raw_parts(moved, size).iter().all(|byte| *byte == 7), "{layout:?}");
                        blocks.push(moved);
                    }
                }
                for block in blocks {
                    // SAFETY: as above.
                    unsafe {
                        let smaller = Mimalloc.realloc(block, larger, size);
                        assert!(
                            std::slice::from_raw_parts(smaller, size).iter().all(|byte| *byte == 7),
                            "{larger:?} made smaller"
                        );
                        Mimalloc.dealloc(smaller, layout);
                    }
                }
            }
        }
    }
}
