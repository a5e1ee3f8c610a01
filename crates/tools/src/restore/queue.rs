//! Batches between those who read the source and those who send.
//!
//! How long it can become is bounded by the [pool](super::pool) that the batches' bytes come from.

use super::batch::Batch;
use super::target::Lane;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// How often a thread that waits for a batch looks whether the run is at an end.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Whether to wait where there is nothing to take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until there is.
    UntilThere,
    /// Not at all.
    Never,
}

/// A queue of batches that keeps those of a serial target apart in time.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    is_closed: bool,
}

impl Queue {
    pub(super) fn push(&self, batches: impl Iterator<Item = Batch>) {
        self.state.lock().batches.extend(batches);
        self.changed.notify_all();
    }

    /// Nothing more will be pushed.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether those who send have to wait for those who read.
    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().batches.is_empty()
    }

    /// The first batch whose lane is free; `None` at the end, once `is_over` says so, or rather than to wait.
    pub(super) fn take(&self, wait: Wait, is_over: impl Fn() -> bool) -> Option<Batch> {
        let mut state = self.state.lock();
        loop {
            if is_over() {
                return None;
            }
            let position = state.batches.iter().position(|batch| batch.target.occupy() == Lane::Free);
            if let Some(position) = position {
                return state.batches.remove(position);
            }
            if wait == Wait::Never || (state.is_closed && state.batches.is_empty()) {
                return None;
            }
            self.changed.wait_for(&mut state, LOOK_UP);
        }
    }

    /// The batch has been dealt with: the next one of its target may go.
    pub(super) fn release(&self, batch: &Batch) {
        // Under the lock, so that nobody misses it between looking and waiting.
        let state = self.state.lock();
        batch.target.vacate();
        drop(state);
        self.changed.notify_one();
    }
}
