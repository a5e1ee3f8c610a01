//! Batches between the threads that read the source and the workers that send.
//!
//! The [pool](super::pool) of the batches' buffers limits the queue's length.

use super::batch::Batch;
use super::target::Lane;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// How often a thread that waits for a batch checks whether the run is over.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Whether to wait if there is no batch to take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until there is one.
    UntilThere,
    /// Not at all.
    Never,
}

/// A queue of batches that hands out a serial target's batches one at a time.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueuedBatches>,
    changed: Condvar,
}

#[derive(Default)]
struct QueuedBatches {
    batches: VecDeque<Batch>,
    is_closed: bool,
}

impl Queue {
    pub(super) fn push(&self, batches: impl Iterator<Item = Batch>) {
        self.state.lock().batches.extend(batches);
        self.changed.notify_all();
    }

    /// Marks the end: nothing more will be pushed.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether no batch waits, so that workers have to wait for the readers.
    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().batches.is_empty()
    }

    /// Takes the first batch whose lane is free. `None` once the queue is closed and empty, once `is_over`, or, with
    /// [`Wait::Never`], if no lane is free.
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

    /// Frees the lane of a finished batch, so that the next one of its target may be sent.
    pub(super) fn release(&self, batch: &Batch) {
        // Under the lock, so that no thread misses the change between its check and its wait.
        let state = self.state.lock();
        batch.target.vacate();
        drop(state);
        self.changed.notify_one();
    }
}
