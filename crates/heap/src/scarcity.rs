//! Makes resting threads give memory back when it is scarce.

use libmimalloc_sys::mi_thread_done;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_SCARCE: AtomicBool = AtomicBool::new(false);

/// Notes whether memory is scarce from now on.
pub fn note_scarcity(is_scarce: bool) {
    IS_SCARCE.store(is_scarce, Ordering::Relaxed);
}

/// If memory is scarce, gives back the memory that this thread has freed, and the thread's blocks that other threads
/// will free. mimalloc keeps both for the thread's next request, which adds up to gigabytes with hundreds of resting
/// threads.
pub fn give_back_before_rest() {
    if IS_SCARCE.load(Ordering::Relaxed) {
        // SAFETY: any thread may call it at any time. The thread's next request begins anew.
        unsafe { mi_thread_done() };
    }
}
