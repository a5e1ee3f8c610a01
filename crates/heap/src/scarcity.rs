//! Threads that rest and keep memory.

use libmimalloc_sys::mi_thread_done;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_SCARCE: AtomicBool = AtomicBool::new(false);

/// Says whether memory is scarce from now on.
pub fn note_scarcity(is_scarce: bool) {
    IS_SCARCE.store(is_scarce, Ordering::Relaxed);
}

/// Gives up the memory that this thread has freed, where memory is scarce, and the blocks of it that others will free. mimalloc
/// keeps both for the thread's next request: of hundreds of threads that rest, that adds up to gigabytes.
pub fn give_back_before_rest() {
    if IS_SCARCE.load(Ordering::Relaxed) {
        // SAFETY: each thread may call it at any time. Its next request begins anew.
        unsafe { mi_thread_done() };
    }
}
