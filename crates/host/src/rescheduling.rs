//! Processors that look often which thread is next.

use crate::pauses::usable_processors;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a processor looks.
const INTERVAL: Duration = Duration::from_micros(500);

/// Has the kernel look often, for as long as that is wanted, which thread of a processor is next.
///
/// A thread that wakes has the processor at once only where it had less than its share until then. A thread that serves
/// short requests often had a little more, some microseconds long, and waits beside one that only works until the kernel
/// looks the next time: at its tick, which is 4 ms away where that comes 250 times a second. Here one thread for each
/// processor does nothing but sleep, briefly; whenever it goes back to sleep, the kernel looks who is next.
pub struct Rescheduling {
    processors: Vec<usize>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    is_wanted: bool,
    is_stopped: bool,
}

impl Default for Rescheduling {
    fn default() -> Self {
        Self { processors: usable_processors(), shared: Arc::default(), threads: Vec::new() }
    }
}

impl Rescheduling {
    /// How many processors this process may use.
    pub fn processors(&self) -> usize {
        self.processors.len()
    }

    /// Begins or ends it. The threads are started when it is wanted first; where the system has none left, there are fewer.
    pub fn want(&mut self, is_wanted: bool) {
        let mut state = self.shared.lock();
        if state.is_wanted == is_wanted {
            return;
        }
        state.is_wanted = is_wanted;
        drop(state);
        if is_wanted && self.threads.is_empty() {
            self.start();
        }
        self.shared.changed.notify_all();
    }

    fn start(&mut self) {
        // They may be others by now.
        self.processors = usable_processors();
        for &processor in &self.processors {
            let shared = Arc::clone(&self.shared);
            let run = move || {
                let mut only = CpuSet::new();
                only.set(processor);
                let _ = sched_setaffinity(None, &only);
                // The kernel wakes threads up to 50 us late otherwise.
                let _ = set_current_timer_slack(NonZeroU64::new(1));
                crate::use_short_slices();
                while shared.is_wanted_again() {
                    std::thread::sleep(INTERVAL);
                }
            };
            let begun = std::thread::Builder::new().name(format!("resched-{processor}")).spawn(run);
            self.threads.extend(begun);
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is wanted; `false` once it is over for good.
    fn is_wanted_again(&self) -> bool {
        let state = self.changed.wait_while(self.lock(), |state| !state.is_wanted && !state.is_stopped);
        !state.unwrap_or_else(PoisonError::into_inner).is_stopped
    }
}

impl Drop for Rescheduling {
    fn drop(&mut self) {
        self.shared.lock().is_stopped = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn threads_begin_when_wanted_and_end_with_it() {
        let mut rescheduling = Rescheduling::default();
        assert_eq!(rescheduling.processors(), usable_processors().len());
        rescheduling.want(false);
        assert!(rescheduling.threads.is_empty());
        for _ in 0..3 {
            rescheduling.want(true);
            assert_eq!(rescheduling.threads.len(), rescheduling.processors());
            rescheduling.want(false);
        }
        let shared = Arc::downgrade(&rescheduling.shared);
        drop(rescheduling);
        assert_eq!(shared.strong_count(), 0, "all threads have ended");
    }

    #[test]
    fn nobody_sleeps_on_while_it_is_not_wanted() {
        let shared = Arc::new(Shared::default());
        let looks = Arc::new(AtomicUsize::new(0));
        let thread = std::thread::spawn({
            let (shared, looks) = (Arc::clone(&shared), Arc::clone(&looks));
            move || {
                while shared.is_wanted_again() {
                    looks.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(looks.load(Ordering::SeqCst), 0);
        shared.lock().is_wanted = true;
        shared.changed.notify_all();
        while looks.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        shared.lock().is_stopped = true;
        thread.join().expect("no panic");
    }
}
