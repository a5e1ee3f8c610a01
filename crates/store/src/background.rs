//! Starts and wakes the store's background threads.
//!
//! The threads' priority is not lowered, because they share locks with clients. A low-priority thread that is preempted
//! while it holds a lock keeps clients waiting until it runs again, which takes tens of milliseconds on busy
//! processors; a thread with its fair share makes them wait for a few.

use crate::panics::caught;
use crate::{Result, Store};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Pause after a failure: a full disk empties slowly.
const REST: Duration = Duration::from_secs(1);

/// Starts a thread that works whenever its bell is rung, and once in each interval, until the store is closed.
pub(crate) fn start(
    store: &Arc<Store>,
    name: &'static str,
    bell: &Arc<WorkBell>,
    interval: Duration,
    work: impl Fn(&Store, &WorkBell) -> Result<()> + Send + 'static,
) -> JoinHandle<()> {
    let (weak, bell) = (Arc::downgrade(store), Arc::clone(bell));
    let run = move || {
        bunko_host::use_long_slices();
        while bell.wait(interval) {
            let Some(store) = weak.upgrade() else { return };
            let outcome = match caught(|| work(&store, &bell)) {
                Ok(outcome) => outcome,
                Err(panic) => Err(store.journal.fail(panic)),
            };
            if let Err(error) = outcome {
                (store.options.on_background_error)(name, &error);
                bell.rest(REST);
            }
        }
    };
    std::thread::Builder::new().name(name.into()).spawn(run).expect("a thread can be started")
}

/// Wakes a background thread. The thread owns only its bell and not the store, which can so be dropped. Unlike
/// [`crate::Bell`], a `WorkBell` has one listener, which waits on a thread.
#[derive(Default)]
pub(crate) struct WorkBell {
    state: Mutex<BellSignals>,
    changed: Condvar,
}

#[derive(Default)]
struct BellSignals {
    is_rung: bool,
    is_closing: bool,
}

impl WorkBell {
    pub fn ring(&self) {
        let mut state = self.state.lock();
        if !state.is_rung {
            state.is_rung = true;
            self.changed.notify_one();
        }
    }

    /// Makes every wait return false from now on.
    pub fn close(&self) {
        self.state.lock().is_closing = true;
        self.changed.notify_one();
    }

    /// Waits for `rest`, or until closing.
    fn rest(&self, rest: Duration) {
        self.changed.wait_while_for(&mut self.state.lock(), |state| !state.is_closing, rest);
    }

    pub fn is_closing(&self) -> bool {
        self.state.lock().is_closing
    }

    /// Waits until the bell is rung, but not longer than `interval`; false when closing.
    pub fn wait(&self, interval: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.is_rung && !state.is_closing, interval);
        state.is_rung = false;
        !state.is_closing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::{Batch, EngineTable, StorageError, StoreOptions, Survival};

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_ring_is_kept_until_the_next_wait_and_then_forgotten() {
        let bell = WorkBell::default();
        bell.ring();
        bell.ring();
        assert!(bell.wait(Duration::MAX), "the wait would never end if the ring were lost");
        assert!(!bell.state.lock().is_rung);
        assert!(bell.wait(Duration::from_millis(1)), "the interval ends the wait");
    }

    #[test]
    fn a_panic_is_told_fails_the_log_and_does_not_hang_a_close() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (own, told) = fake("own", Survival::Durable);
        let (sender, complaints) = std::sync::mpsc::channel();
        let sender = Mutex::new(sender);
        let options = StoreOptions {
            on_background_error: Arc::new(move |what, error| {
                let _ = sender.lock().send(format!("{what}: {error}"));
            }),
            ..StoreOptions::at_rest()
        };
        let store = Store::open(directory.path(), options, EngineTable::only(own)).expect("opens");
        let lsn = store.commit(&Batch::new()).expect("committed");
        store.write(lsn).expect("written");
        *told.panics.lock() = true;
        store.checkpointer.ask();
        let complaint = complaints.recv_timeout(LONG).expect("told");
        assert!(complaint.starts_with("checkpoint: a panic") && complaint.ends_with("asked for"), "{complaint}");
        assert!(matches!(store.commit(&Batch::new()), Err(StorageError::LogFailed)));
        let (done, closed) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(store.close().is_err()));
        assert!(closed.recv_timeout(Duration::from_secs(20)).expect("a close ends"), "and says what was");
    }

    #[test]
    fn closing_ends_the_present_wait_and_all_later_ones() {
        let bell = Arc::new(WorkBell::default());
        let waiting = {
            let bell = Arc::clone(&bell);
            std::thread::spawn(move || bell.wait(Duration::MAX))
        };
        // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
        std::thread::sleep(Duration::from_millis(10));
        bell.close();
        assert!(!waiting.join().expect("no panic"));
        bell.ring();
        assert!(!bell.wait(LONG) && bell.is_closing());
    }
}
