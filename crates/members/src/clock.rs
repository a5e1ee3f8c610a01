//! The thread `agreement`: tells the agreement that the log has moved, and that time has passed.

use crate::core::Core;
use crate::{lag, memory};
use bunko_store::{Bell, Clock};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Longest time without a check whether the thread must end.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(200);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread for a ring after the one numbered `heard`, or until a moment.
pub(crate) fn wait_for_ring(clock: &Clock, bell: &Arc<Bell>, heard: u64, until: Instant) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut listening = pin!(bell.after(heard));
    while listening.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        let left = until.saturating_duration_since(clock.now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}

/// Tells the agreement of the log and of time until the member ends. The work of the thread `agreement`.
pub(crate) fn run(core: &Core, is_over: &AtomicBool) {
    let bell = core.store.log_bell();
    let mut samples = lag::Samples::default();
    while !is_over.load(Ordering::Acquire) {
        let heard = bell.rings();
        core.note_log();
        core.end_reads_that_wait();
        memory::look(core);
        core.give_next_vote();
        lag::look(core, &mut samples);
        let due = core.tick().min(core.clock.now() + WAIT_MAX);
        wait_for_ring(&core.clock, bell, heard, due);
    }
}
