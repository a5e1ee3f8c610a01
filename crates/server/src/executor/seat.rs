//! A thread's place among those that serve, as the others see it.

use super::queue::Queue;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What one thread tells the others. It is written for every task, so no two stand in one cache line.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Seat {
    /// Tasks to run, in order: others take them only where it does not come to them.
    pub ready: Mutex<Queue>,
    /// Odd while the thread runs a task. Only that thread writes it.
    steps: AtomicU64,
    /// Whether the thread waits until it is needed.
    rests: AtomicBool,
    /// Whether a thread has the seat.
    is_taken: AtomicBool,
    /// Whether that thread is to leave after what it is at.
    is_dismissed: AtomicBool,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It serves, or comes to it at once.
    Serves,
    /// It is inside the task in which it was at the last look.
    IsHeld,
    /// It waits until it is needed.
    Rests,
}

impl Seat {
    /// Runs a task.
    pub fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
        let ran = run();
        self.steps.store(steps.wrapping_add(2), Ordering::Relaxed);
        ran
    }

    /// Waits until the thread is needed.
    pub fn rest<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.rests.store(true, Ordering::Relaxed);
        let waited = wait();
        self.rests.store(false, Ordering::Relaxed);
        waited
    }

    /// What the thread does; `last` is what it had come to at the last look.
    pub fn look(&self, last: &mut u64) -> Activity {
        let steps = self.steps.load(Ordering::Relaxed);
        let before = std::mem::replace(last, steps);
        if self.rests.load(Ordering::Relaxed) {
            Activity::Rests
        } else if steps % 2 == 1 && steps == before {
            Activity::IsHeld
        } else {
            Activity::Serves
        }
    }

    /// Takes it for a new thread; whether it was free.
    pub fn take(&self) -> bool {
        let is_free = !self.is_taken.swap(true, Ordering::AcqRel);
        if is_free {
            self.is_dismissed.store(false, Ordering::Relaxed);
        }
        is_free
    }

    /// The thread leaves it.
    pub fn leave(&self) {
        self.is_taken.store(false, Ordering::Release);
    }

    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Acquire)
    }

    /// Has the thread leave after what it is at; whether it had not been told before.
    pub fn dismiss(&self) -> bool {
        !self.is_dismissed.swap(true, Ordering::Relaxed)
    }

    pub fn is_dismissed(&self) -> bool {
        self.is_dismissed.load(Ordering::Relaxed)
    }
}
