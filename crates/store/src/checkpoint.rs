//! Checkpoints: sync the log, flush the engines, write the watermark - in that order.
//!
//! A checkpoint then deletes segments of the log (`retire_segments`, the only place that does): those below the
//! watermark and the commit point that every engine has left, and that no history, image, archive, follower or open chain
//! still needs.

use crate::background::{self, WorkBell};
use crate::engines::Others;
use crate::failpoint::{self, Failpoint};
use crate::history::Kept;
use crate::journal::Journal;
use crate::log::{first_record, segment_of};
use crate::manifest::Manifest;
use crate::planted::{self, Bug};
use crate::remembered::RememberedCopy;
use crate::{Engine, KeyspaceMap, KeyspaceStatistics, Log, Lsn, Result, StorageError, Store};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Starts checkpoints, and keeps figures of the last ones.
#[derive(Default)]
pub(crate) struct Checkpointer {
    bell: Arc<WorkBell>,
    /// Whether engines prepare for reads after the next checkpoint.
    bulk_is_over: AtomicBool,
    /// Held during a checkpoint: one runs at a time.
    pub(crate) running: Mutex<()>,
    count: AtomicU64,
    last_ms: AtomicU64,
    longest_ms: AtomicU64,
}

impl Checkpointer {
    pub fn start(store: &Arc<Store>) -> JoinHandle<()> {
        let interval = store.options.checkpoint_interval;
        background::start(store, "checkpoint", &store.checkpointer.bell, interval, |store, _| {
            let bulk_is_over = store.checkpointer.bulk_is_over.swap(false, Ordering::AcqRel);
            let outcome = store.checkpoint();
            if outcome.is_ok() {
                for engine in store.engines.all() {
                    engine.release();
                    if bulk_is_over {
                        engine.prepare_for_reads();
                    }
                }
                store.merger.ask();
            }
            store.reclaimer.ask();
            outcome
        })
    }

    /// Asks for a checkpoint soon.
    pub fn ask(&self) {
        self.bell.ring();
    }

    /// Asks for a checkpoint soon, after which engines prepare for reads.
    fn ask_for_reads(&self) {
        self.bulk_is_over.store(true, Ordering::Release);
        self.bell.ring();
    }

    pub fn close(&self) {
        self.bell.close();
    }

    pub fn is_closing(&self) -> bool {
        self.bell.is_closing()
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn last_ms(&self) -> u64 {
        self.last_ms.load(Ordering::Relaxed)
    }

    pub fn longest_ms(&self) -> u64 {
        self.longest_ms.load(Ordering::Relaxed)
    }

    fn finished(&self, elapsed: Duration) {
        let elapsed_ms = elapsed.as_millis() as u64;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.last_ms.store(elapsed_ms, Ordering::Relaxed);
        self.longest_ms.fetch_max(elapsed_ms, Ordering::Relaxed);
    }
}

/// The state that a checkpoint makes durable.
struct Marked {
    watermark: Lsn,
    engines: Vec<Arc<dyn Engine>>,
    open_chain: Option<Lsn>,
    time_ms: u64,
    keyspaces: KeyspaceMap<KeyspaceStatistics>,
    routes: Arc<Others>,
    remembered: RememberedCopy,
}

impl Store {
    /// Makes engines flush and merge soon, concurrently with all other work. Called after a bulk of writes that will be read next,
    /// such as an index build.
    pub fn prepare_for_reads(&self) {
        self.checkpointer.ask_for_reads();
    }

    /// Makes the present state durable in the engines, so that recovery starts here. A checkpoint that carries out
    /// batches that make room uses the disk reserve if the disk is full. If the commit point is behind, a checkpoint waits,
    /// or only the log is synced: see `commit_point`.
    pub fn checkpoint(&self) -> Result<()> {
        let removals = self.disk.removals();
        let mut outcome = self.checkpoint_once();
        while matches!(outcome, Err(StorageError::OutOfDiskSpace { .. })) && self.disk.lend_to_checkpoint() {
            outcome = self.checkpoint_once();
        }
        if outcome? {
            self.disk.note_checkpoint(removals);
        }
        Ok(())
    }

    /// Returns whether the checkpoint was made. If it must not pass the commit point, only the log is synced.
    fn checkpoint_once(&self) -> Result<bool> {
        let _running = self.checkpointer.running.lock();
        let started = self.options.clock.now();
        let Some(marked) = self.mark()? else {
            self.journal.sync_blocking(self.watermark.visible())?;
            return Ok(false);
        };
        let watermark = marked.watermark;
        failpoint::pass(Failpoint::Marked);
        let is_given_up = !self.await_commit(watermark);
        // An engine's durable state must never point past the durable log.
        self.journal.sync_blocking(watermark)?;
        if is_given_up {
            return Ok(false);
        }
        self.finish_checkpoint(&marked)?;
        self.checkpointer.finished(self.options.clock.since(started));
        Ok(true)
    }

    /// Lets the engines mark what is applied, and copies what else the manifest tells; `None` if no checkpoint may be
    /// made now.
    fn mark(&self) -> Result<Option<Marked>> {
        // Locked before the gate: a checkpoint that waits for the gate keeps all writers out.
        let _no_open_chain = self.chain.lock();
        let _no_batch_in_flight = self.gate.write();
        let watermark = self.watermark.visible();
        if self.is_held_back(watermark) {
            return Ok(None);
        }
        let engines = self.engines.all();
        for engine in &engines {
            engine.begin_checkpoint(watermark)?;
        }
        Ok(Some(Marked {
            watermark,
            engines,
            open_chain: self.first_of_open_chain(),
            time_ms: self.journal.last_time_ms(),
            keyspaces: self.statistics.copy(),
            routes: self.engines.routed(),
            remembered: self.remembered.copy(),
        }))
    }

    fn manifest_of(&self, marked: &Marked) -> Manifest {
        let routes = marked.routes.names().into_iter().map(|(keyspace, name)| (keyspace, name.to_owned()));
        Manifest {
            watermark: marked.watermark,
            open_chain: marked.open_chain,
            time_ms: marked.time_ms,
            noted_from: self.kept.as_ref().map(Kept::noted_from),
            history_bytes: self.kept.as_ref().map(Kept::bytes_max),
            keyspaces: marked.keyspaces.iter().map(|(keyspace, statistics)| (keyspace, *statistics)).collect(),
            engines: Vec::new(),
            routes: routes.collect(),
            remembered: marked.remembered.encode(),
            terms: self.terms.below(marked.watermark),
            committed: None,
            is_of_older_format: false,
        }
    }

    /// Position of the first record of a secondary's open chain; `None` if no chain is open.
    fn first_of_open_chain(&self) -> Option<Lsn> {
        self.open_chain.lock().as_ref().map(|(first, _)| *first)
    }

    fn finish_checkpoint(&self, marked: &Marked) -> Result<()> {
        let mut manifest = self.manifest_of(marked);
        let engines = marked.engines.as_slice();
        let oldest = self.oldest_view();
        if planted::active(Bug::ManifestBeforeFlush)
            && let Some(directory) = &self.directory
            && let Some(last) = Manifest::read(&directory.path)?
        {
            manifest.engines = last.engines;
            manifest.write(&directory.path)?;
            manifest.engines = Vec::new();
        }
        for engine in engines {
            manifest.engines.push((engine.name().to_owned(), engine.finish_checkpoint(oldest)?));
        }
        let (Some(directory), Journal::Log(log)) = (&self.directory, &self.journal) else { return Ok(()) };
        manifest.committed = self.commit_point.held();
        if planted::active(Bug::SegmentBeforeExtent) {
            self.retire_segments(log, marked)?;
        }
        failpoint::pass(Failpoint::Flushed);
        manifest.write(&directory.path)?;
        failpoint::pass(Failpoint::ManifestWritten);
        for engine in engines {
            engine.checkpoint_is_durable(oldest)?;
        }
        self.retire_segments(log, marked)
    }

    /// Gives up segments below the watermark and the commit point that neither an engine nor a reader of the history
    /// needs any more.
    fn retire_segments(&self, log: &Log, marked: &Marked) -> Result<()> {
        let committed = if planted::active(Bug::UncommittedGivenUp) { marked.watermark } else { self.committed() };
        let watermark = marked.watermark.min(committed);
        let end = match &self.kept {
            Some(kept) => self.give_up_history(kept, watermark)?,
            None => segment_of(watermark.0),
        };
        // A chain that ended during this checkpoint is in no engine's files: the next start reads it from its first
        // record.
        let chains = [marked.open_chain, self.first_of_open_chain()].into_iter().flatten();
        let open_chain = chains.map(|first| segment_of(first.0)).min().unwrap_or(end);
        let archived = self.archives.needed_from(watermark);
        let read = segment_of(self.images.pinned().min(archived).0);
        let end = end.min(log.oldest_shipped_segment(watermark)).min(open_chain).min(read);
        let mut numbers = log.segment_numbers();
        numbers.retain(|number| *number < end && marked.engines.iter().all(|engine| engine.has_left_segment(*number)));
        log.retire(&numbers)?;
        if let Some(oldest) = log.oldest_segment() {
            self.terms.forget_before(Lsn(first_record(oldest)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_room::Draw;
    use crate::engines::fake::fake;
    use crate::{Batch, EngineTable, KeyspaceId, RecordId, SEGMENT_BYTES, StoreOptions, Survival};
    use bunko_testkit::directory::crash_copy;
    use std::path::Path;

    fn table() -> EngineTable {
        EngineTable::only(fake("own", Survival::Durable).0)
    }

    fn secondary(path: &Path) -> Arc<Store> {
        Store::open_member(path, StoreOptions::at_rest(), table(), Lsn(0)).expect("opens")
    }

    fn large(record: u64) -> Batch<'static> {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(record as u32), RecordId(record), vec![7; SEGMENT_BYTES as usize / 2]);
        batch
    }

    #[test]
    fn a_start_finds_a_chain_that_ended_during_a_checkpoint() {
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("temporary directory"));
        let primary = Store::open(directories[0].path(), StoreOptions::at_rest(), table()).expect("opens");
        // The record of another writer, within the chain, is in the next segment.
        let first = primary.journal.append_links(&[&large(1)], Draw::Free).expect("appended")[0].lsn;
        let between = primary.journal.append(&large(2), Draw::Free, 1, |_| ()).expect("appended").lsn;
        assert!(segment_of(first.0) < segment_of(between.0));
        let at = primary.journal.reserve(1, first, 0, Draw::Free).expect("reserved");
        assert!(primary.journal.place(1, |_| ()));
        primary.journal.write(at).expect("written");
        let mut bytes = Vec::new();
        primary
            .read_raw_log(primary.places().start, 0)
            .and_then(|mut log| log.read(1 << 30, &mut bytes))
            .expect("read");

        let store = secondary(directories[1].path());
        store.append_raw(store.last_position(), &bytes).expect("appended");
        store.set_committed(at);
        store.apply_committed().expect("applied");
        let marked = store.mark().expect("marked").expect("all that is applied is committed");
        assert_eq!(marked.open_chain, Some(first));
        store.set_committed(Lsn(u64::MAX));
        store.apply_committed().expect("applied");
        assert_eq!(store.first_of_open_chain(), None);
        store.finish_checkpoint(&marked).expect("finished");
        let killed = crash_copy(directories[1].path());
        let again = secondary(killed.path());
        assert_eq!(again.visible_end(), store.visible_end());
    }
}
