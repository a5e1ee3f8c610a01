//! Limits the bytes in flight between two threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Counts bytes in flight, and makes threads wait before they exceed a limit.
pub(super) struct Budget {
    limit: usize,
    state: Mutex<Usage>,
    changed: Condvar,
}

#[derive(Default)]
struct Usage {
    used: usize,
    closed: bool,
}

/// The thread that consumes the bytes is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed;

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until there is room. A piece larger than the limit waits until nothing else is in flight.
    pub(super) fn acquire(&self, bytes: usize) -> Result<(), Closed> {
        let full = |state: &mut Usage| !state.closed && state.used > 0 && state.used + bytes > self.limit;
        let mut state = self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return Err(Closed);
        }
        state.used += bytes;
        Ok(())
    }

    pub(super) fn release(&self, bytes: usize) {
        self.lock().used -= bytes;
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
