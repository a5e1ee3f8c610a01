//! Prefetching of memory that will be read soon.

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Asks the processor to bring bytes into its caches, without waiting for them. It is only a hint.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(LINE_BYTES) {
        prefetch_line(line.as_ptr());
    }
}

/// As [`prefetch`], for the cache line at the beginning of a value.
#[inline]
pub fn prefetch_value<T>(value: &T) {
    prefetch_line(std::ptr::from_ref(value).cast());
}

#[inline]
fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it fails for no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
