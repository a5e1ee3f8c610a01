//! Threads that serve in place of held threads.
//!
//! Long commands ask to run elsewhere, but a thread may still wait for the disk, for a lock after its first change, or
//! in code that asks too late. So one thread checks every few milliseconds whether any thread still serves. If none
//! does, as many substitutes start as threads are held, and they leave when they are no longer needed. The same thread
//! checks whether requests compete with long commands for processors.

use super::crowd::Crowd;
use super::seat::Activity;
use super::worker::Worker;
use super::{EMPLOYER, Executor, NOBODY};
use bunko_command::THREAD_STACK_BYTES;
use bunko_lookout::Patience;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::Duration;
use tokio::runtime::Handle;

/// Maximum number of substitutes at once. Beyond that, requests wait until a held thread returns.
pub(super) const SUBSTITUTES_MAX: usize = 64;
/// Interval of the checks, and the interval while the threads are idle. A thread in one task at two checks is held.
const TICK: Duration = Duration::from_millis(4);
const IDLE_TICK: Duration = Duration::from_millis(20);

impl Executor {
    /// Watches the threads until all are stopped. Returns after the last substitute.
    pub fn watch(self: &Arc<Self>) {
        let mut last = vec![0; self.seats.len()];
        let mut crowd = Crowd::default();
        std::thread::scope(|scope| {
            while !self.stopped.load(Ordering::Acquire) {
                let is_idle = self.is_idle();
                std::thread::sleep(if is_idle { IDLE_TICK } else { TICK });
                crowd.look((self.apart.running(), self.apart.begun()), self.lookout.served());
                let (serving, held) = self.look(&mut last);
                if serving == 0 {
                    self.begin_substitutes(scope, held.max(1));
                } else if held == 0 || serving > self.threads {
                    self.dismiss_substitute();
                }
            }
        });
    }

    fn is_idle(&self) -> bool {
        self.lookout.helpers() == 0 && self.lookout.is_light() && self.lookout.waiting() == self.threads
    }

    /// Counts the threads that serve and the threads that are held.
    fn look(&self, last: &mut [u64]) -> (usize, usize) {
        let (mut serving, mut held) = (0, 0);
        for (seat, last) in self.seats.iter().zip(last).filter(|(seat, _)| seat.is_taken()) {
            match seat.look(last) {
                Activity::Serves => serving += 1,
                Activity::IsHeld => held += 1,
                Activity::Rests => {}
            }
        }
        (serving, held)
    }

    fn begin_substitutes<'s>(self: &'s Arc<Self>, scope: &'s Scope<'s, '_>, count: usize) {
        let runtime = Handle::try_current().ok();
        let free = (self.threads..self.seats.len()).filter(|&number| self.seats[number].take()).take(count);
        for number in free {
            let runtime = runtime.clone();
            self.seats_used.fetch_max(number + 1, Ordering::AcqRel);
            let thread = std::thread::Builder::new().name(format!("conn-{number}")).stack_size(THREAD_STACK_BYTES);
            let begun = thread.spawn_scoped(scope, move || {
                let _entered = runtime.as_ref().map(Handle::enter);
                self.substitute(number);
            });
            if begun.is_err() {
                // The system has no threads left; the next check tries again.
                self.seats[number].leave();
                return;
            }
        }
    }

    fn dismiss_substitute(&self) {
        let substitutes = &self.seats[self.threads..];
        let dismissed = substitutes.iter().rev().any(|seat| seat.is_taken() && seat.dismiss());
        if !dismissed && substitutes.iter().all(|seat| !seat.is_taken()) {
            self.seats_used.store(self.threads, Ordering::Release);
        }
    }

    /// Serves as a substitute until dismissed.
    fn substitute(self: &Arc<Self>, number: usize) {
        EMPLOYER.set((Arc::as_ptr(self).addr(), number));
        let mut worker = Worker::new(self, number);
        self.lookout.help(|| {
            while !worker.is_stopped() && !self.seats[number].is_dismissed() {
                worker.turn(Patience::Tick);
            }
            worker.leave();
        });
        EMPLOYER.set(NOBODY);
        self.seats[number].leave();
    }
}
