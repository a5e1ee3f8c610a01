//! Group commit: one fdatasync serves all waiting commits.

use super::append::Log;
use super::segment::{Segment, segment_of};
use crate::panics::caught;
use crate::planted::{self, Bug};
use crate::{Lsn, Result, StorageError};
use bunko_host::Clock;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Called once with the outcome, on the syncing thread. It must not block.
pub type DurabilityCallback = Box<dyn FnOnce(Result<()>) + Send>;

/// The durability callbacks that wait, and the thread that syncs for them.
#[derive(Default)]
pub(super) struct GroupCommit {
    requests: Arc<Requests>,
    synced_groups: AtomicU64,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// Shared with the syncing thread, which must not keep the log alive.
#[derive(Default)]
struct Requests {
    state: Mutex<CommitQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct CommitQueue {
    waiting: Vec<DurabilityCallback>,
    /// Callbacks that must not run before the given time. There are few: the log's followers have at most one pending.
    gathering: Vec<(Instant, DurabilityCallback)>,
    is_closing: bool,
}

impl GroupCommit {
    /// Starts the syncing thread, which ends with the log.
    pub fn start(log: &Arc<Log>, interval: Duration) {
        let weak = Arc::downgrade(log);
        let (requests, clock) = (Arc::clone(&log.group_commit.requests), log.clock.clone());
        let thread = std::thread::Builder::new()
            .name("log-sync".into())
            .spawn(move || {
                while let Some(waiting) = requests.wait(interval, &clock) {
                    let Some(log) = weak.upgrade() else { return };
                    // The callbacks run in any case, also after a panic, because no other thread would run them.
                    let before = log.synced_lsn();
                    let outcome = caught(|| log.sync()).unwrap_or_else(|panic| Err(log.fail(panic)));
                    for callback in waiting {
                        let outcome = outcome.as_ref().map(|&()| ()).map_err(|_| StorageError::LogFailed);
                        if let Err(panic) = caught(|| callback(outcome)) {
                            log.fail(panic);
                        }
                    }
                    // Rung after the callbacks, so that a listener that finds too little on disk can already ask for
                    // another sync.
                    if log.synced_lsn() > before {
                        log.durable().ring();
                    }
                }
            })
            .expect("a thread can be started");
        *log.group_commit.thread.lock() = Some(thread);
    }

    pub fn synced_groups(&self) -> u64 {
        self.synced_groups.load(Ordering::Relaxed)
    }

    /// Lets the thread end after the callbacks that already wait.
    pub fn close(&self) {
        self.requests.state.lock().is_closing = true;
        self.requests.changed.notify_all();
    }

    pub fn join(&self) {
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Requests {
    /// Waits for callbacks that are due, and returns them; the list is empty if none is due after `interval`. `None`
    /// when closing and no callback is left.
    fn wait(&self, interval: Duration, clock: &Clock) -> Option<Vec<DurabilityCallback>> {
        let deadline = clock.now() + interval;
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.is_closing {
            let first = state.gathering.iter().map(|(from, _)| *from).min();
            let until = first.map_or(deadline, |first| first.min(deadline));
            let left = until.saturating_duration_since(clock.now());
            if self.changed.wait_for(&mut state, left).timed_out() {
                break;
            }
        }
        let CommitQueue { waiting, gathering, is_closing } = &mut *state;
        if *is_closing && waiting.is_empty() && gathering.is_empty() {
            return None;
        }
        let mut due = std::mem::take(waiting);
        if !gathering.is_empty() {
            let now = clock.now();
            due.extend(gathering.extract_if(.., |(from, _)| *is_closing || *from <= now).map(|(_, callback)| callback));
        }
        Some(due)
    }
}

impl Drop for Log {
    /// Runs without `Log::close` after a start that failed. Without it, the preallocating thread could rename an empty
    /// file over a segment that the next start has already written records to.
    fn drop(&mut self) {
        self.group_commit.close();
        self.stop_preallocating();
    }
}

impl Log {
    /// Calls back once the record at `lsn` is on disk.
    pub fn on_durable(&self, lsn: Lsn, callback: DurabilityCallback) {
        if self.synced.load(Ordering::Acquire) > lsn.0 {
            callback(Ok(()));
            return;
        }
        // The record has been appended already, so the next sync covers it.
        self.request(callback, |state, callback| state.waiting.push(callback));
    }

    /// As [`Log::on_durable`], but not before `from`, so that one sync covers all records that arrive until then.
    pub(crate) fn on_durable_from(&self, from: Instant, callback: DurabilityCallback) {
        self.request(callback, |state, callback| state.gathering.push((from, callback)));
    }

    fn request(&self, callback: DurabilityCallback, add: impl FnOnce(&mut CommitQueue, DurabilityCallback)) {
        let mut state = self.group_commit.requests.state.lock();
        if state.is_closing {
            drop(state);
            callback(Err(StorageError::LogFailed));
            return;
        }
        add(&mut state, callback);
        drop(state);
        self.group_commit.requests.changed.notify_one();
    }

    /// End of the part of the log that is in the kernel.
    pub(crate) fn written_lsn(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// End of the synced part of the log.
    pub fn synced_lsn(&self) -> Lsn {
        Lsn(self.synced.load(Ordering::Acquire))
    }

    /// Returns once everything below `end` is on disk.
    ///
    /// # Errors
    /// [`StorageError::LogFailed`] once the log has failed, even if the records are on disk: no checkpoint may follow,
    /// and no part of the log may be given up.
    pub(crate) fn sync_blocking(&self, end: Lsn) -> Result<()> {
        if self.has_failed() {
            return Err(StorageError::LogFailed);
        }
        if self.synced_lsn() >= end {
            return Ok(());
        }
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let last = Lsn(end.0.saturating_sub(1));
        self.on_durable(last, Box::new(move |outcome| drop(sender.send(outcome))));
        receiver.recv().unwrap_or(Err(StorageError::LogFailed))
    }

    /// Writes and syncs all that has been appended so far. Only the syncing thread calls this.
    fn sync(&self) -> Result<()> {
        let _syncing = self.syncing.lock();
        let end = self.next_lsn();
        let start = self.synced_lsn();
        if end <= start {
            return Ok(());
        }
        if self.has_failed() {
            return Err(StorageError::LogFailed);
        }
        self.write_through(Lsn(end.0 - 1))?;
        if !planted::active(Bug::NoFdatasync) {
            for number in segment_of(start.0)..=segment_of(end.0) {
                let segment = self.segments.load().get(&number).cloned();
                if let Some(segment) = segment {
                    self.sync_segment(&segment)?;
                }
            }
        }
        self.synced.store(end.0, Ordering::Release);
        self.moved().ring();
        self.group_commit.synced_groups.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn sync_segment(&self, segment: &Segment) -> Result<()> {
        let started = self.clock.now();
        segment.file.sync_data().map_err(|error| self.fail(StorageError::io(&segment.path, error)))?;
        self.sync_latencies.record(self.clock.since(started));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn nothing() -> DurabilityCallback {
        Box::new(|_| {})
    }

    #[test]
    fn a_gathered_callback_is_due_at_its_time_and_not_at_an_earlier_sync() {
        let (requests, clock) = (Requests::default(), Clock::standing(0));
        let due_after = |interval| requests.wait(interval, &clock).map(|due| due.len());
        requests.state.lock().gathering.push((clock.now() + LONG, nothing()));
        requests.state.lock().waiting.push(nothing());
        assert_eq!(due_after(2 * LONG), Some(1), "a callback that waits for a sync is not kept waiting");
        assert_eq!(due_after(Duration::from_millis(1)), Some(0), "the other one is not due");
        clock.advance(LONG);
        assert_eq!(due_after(LONG), Some(1));
        assert!(requests.state.lock().gathering.is_empty());
    }

    #[test]
    fn a_gathered_callback_is_due_when_the_log_ends() {
        let (requests, clock) = (Requests::default(), Clock::standing(0));
        requests.state.lock().gathering.push((clock.now() + LONG, nothing()));
        requests.state.lock().is_closing = true;
        assert_eq!(requests.wait(LONG, &clock).map(|due| due.len()), Some(1));
        assert!(requests.wait(LONG, &clock).is_none());
    }
}
