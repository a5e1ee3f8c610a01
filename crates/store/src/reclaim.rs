//! Gives space back, step by step, concurrently with all other work.

use crate::background::{self, WorkBell};
use crate::disk_room::unless_full;
use crate::{Effort, Reclaimed, Result, SEGMENT_BYTES, StorageError, Store};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which engines are asked to reclaim.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of steps of one `compact`: at 64 MB each, more than any data directory that one process serves.
const STEPS_MAX: usize = 1 << 20;

/// Wakes the thread that reclaims.
#[derive(Default)]
pub(crate) struct Reclaimer {
    bell: Arc<WorkBell>,
    /// Whether the next run reclaims with [`Effort::Now`].
    is_urgent: AtomicBool,
    /// Held during a step: each step pins the oldest view, and would hold the other one back.
    pub(crate) running: Mutex<()>,
}

impl Reclaimer {
    /// Starts the thread that gives space back.
    pub fn start(store: &Arc<Store>) -> JoinHandle<()> {
        background::start(store, "reclaim", &store.reclaimer.bell, INTERVAL, |store, bell| {
            store.end_unused_image();
            store.end_silent_archives();
            store.relieve_in_background()?;
            let is_urgent = store.reclaimer.is_urgent.swap(false, Ordering::Relaxed);
            if store.disk.is_scarce(2 * SEGMENT_BYTES) {
                unless_full(store.reclaim_while(Effort::Room, || !bell.is_closing()))?;
            }
            let effort = if is_urgent { Effort::Now } else { Effort::Usual };
            if store.reclaim_while(effort, || !bell.is_closing())? == Reclaimed::Some {
                // The next checkpoint deletes the files that the engines have left.
                store.checkpointer.ask();
            }
            Ok(())
        })
    }

    /// Wakes the thread soon.
    pub fn ask(&self) {
        self.bell.ring();
    }

    pub fn close(&self) {
        self.bell.close();
    }
}

impl Store {
    /// Takes steps while they find work and `goes_on` is true.
    fn reclaim_while(&self, effort: Effort, goes_on: impl Fn() -> bool) -> Result<Reclaimed> {
        let mut outcome = Reclaimed::Nothing;
        while goes_on() && self.reclaim_step(effort)? == Reclaimed::Some {
            outcome = Reclaimed::Some;
        }
        Ok(outcome)
    }

    pub(crate) fn reclaim_step(&self, effort: Effort) -> Result<Reclaimed> {
        let _running = self.reclaimer.running.lock();
        let (oldest, _pin) = self.snapshots.pin_oldest(|| self.committed());
        // Engines remove documents because a record made them dead. A crash must not lose that record.
        self.journal.sync_blocking(oldest)?;
        let mut outcome = Reclaimed::Nothing;
        for engine in self.engines.all() {
            if engine.reclaim(oldest, effort)? == Reclaimed::Some {
                outcome = Reclaimed::Some;
            }
        }
        Ok(outcome)
    }

    /// Checkpoints, and makes engines begin at once with all the reclaiming that they had put off.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn flush(&self) -> Result<()> {
        self.checkpoint()?;
        self.reclaimer.is_urgent.store(true, Ordering::Relaxed);
        self.reclaimer.ask();
        Ok(())
    }

    /// Gives back all possible space, and returns once that is done.
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn compact(&self) -> Result<()> {
        // Counts as a batch that makes room, so that its checkpoint may use the reserve.
        self.disk.note_removal();
        self.checkpoint()?;
        // Rewriting sorted files takes disk before the old files go. On a full disk it is left for later.
        unless_full(self.compact_engines())?;
        match self.reclaim_while_some(|| true) {
            Err(StorageError::OutOfDiskSpace { .. }) => self.relieve().map(drop),
            outcome => {
                self.disk.restore();
                outcome
            }
        }
    }

    /// Gives back the space of dead documents while `goes_on` is true; sorted files stay as they are.
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn reclaim_all(&self, goes_on: impl Fn() -> bool) -> Result<()> {
        self.checkpoint()?;
        self.reclaim_while_some(goes_on)
    }

    fn reclaim_while_some(&self, goes_on: impl Fn() -> bool) -> Result<()> {
        for _ in 0..STEPS_MAX {
            if !goes_on() || self.reclaim_step(Effort::All)? == Reclaimed::Nothing {
                break;
            }
        }
        // The first checkpoint releases what the engines have left, the second what only the first one's manifest still
        // names.
        self.checkpoint()?;
        self.checkpoint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::{Batch, EngineTable, KeyspaceId, Lsn, RecordId, StoreOptions, Survival};
    use bunko_testkit::patience::wait_until;
    use std::path::Path;

    fn store(table: EngineTable) -> Arc<Store> {
        Store::open(Path::new("touched by nobody"), StoreOptions::at_rest(), table).expect("opens")
    }

    fn write(store: &Store) {
        let mut batch = Batch::new();
        batch.put_key(KeyspaceId(1), b"key", RecordId(1));
        store.commit(&batch).expect("committed");
    }

    #[test]
    fn compact_continues_while_there_are_steps_and_keeps_viewed_documents() {
        let (own, told) = fake("own", Survival::Volatile);
        let store = store(EngineTable::only(own));
        write(&store);
        let snapshot = store.snapshot();
        write(&store);
        *told.steps_left.lock() = 3;
        store.compact().expect("compacts");
        assert_eq!(*told.reclaimed.lock(), [snapshot.lsn(); 3]);
        let oldest = snapshot.lsn();
        drop(snapshot);
        *told.steps_left.lock() = 1;
        store.compact().expect("compacts");
        let last = told.reclaimed.lock().last().copied();
        assert!(last > Some(oldest), "{last:?} is still held, {oldest:?} was let go");
        assert!(!Path::new("touched by nobody").exists());
        store.close().expect("closes");
    }

    #[test]
    fn reclaimable_segments_are_found_without_being_asked() {
        let (own, told) = fake("own", Survival::Volatile);
        let store = store(EngineTable::only(own));
        write(&store);
        *told.steps_left.lock() = 2;
        store.reclaimer.ask();
        wait_until("all steps are taken", || *told.steps_left.lock() == 0);
        assert_eq!(told.reclaimed.lock().len(), 2);
        assert!(told.reclaimed.lock().iter().all(|oldest| *oldest > Lsn(0)));
        store.close().expect("closes");
    }
}
