//! Checkpoints: sync the log, flush the engines, write the watermark - in that order.

use crate::background::{self, Bell};
use crate::failpoint::{self, Failpoint};
use crate::history::Kept;
use crate::journal::Journal;
use crate::log::{first_record, segment_of};
use crate::manifest::Manifest;
use crate::planted::{self, Bug};
use crate::{Engine, Log, Lsn, Result, StorageError, Store};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Starts checkpoints, and keeps figures of the last ones.
#[derive(Default)]
pub(crate) struct Checkpointer {
    bell: Arc<Bell>,
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

impl Store {
    /// Makes engines flush and merge soon, beside all other work. Called after a bulk of writes that will be read next,
    /// such as an index build.
    pub fn prepare_for_reads(&self) {
        self.checkpointer.ask_for_reads();
    }

    /// Makes the present state durable in the engines, so that recovery starts here. A checkpoint that carries out
    /// batches that make room takes the disk reserve if it finds no disk.
    pub fn checkpoint(&self) -> Result<()> {
        let removals = self.disk.removals();
        let mut outcome = self.checkpoint_once();
        while matches!(outcome, Err(StorageError::OutOfDiskSpace { .. })) && self.disk.lend_to_checkpoint() {
            outcome = self.checkpoint_once();
        }
        if outcome.is_ok() {
            self.disk.note_checkpoint(removals);
        }
        outcome
    }

    fn checkpoint_once(&self) -> Result<()> {
        let _running = self.checkpointer.running.lock();
        let started = self.options.clock.now();
        let (engines, open_chain, marked) = {
            // Locked before the gate: a checkpoint that waits for the gate keeps all writers out.
            let _no_open_chain = self.chain.lock();
            let _no_batch_in_flight = self.gate.write();
            let watermark = self.watermark.visible();
            let engines = self.engines.all();
            for engine in &engines {
                engine.begin_checkpoint(watermark)?;
            }
            let (keyspaces, routes) = (self.statistics.copy(), self.engines.routed());
            (
                engines,
                self.first_of_open_chain(),
                (watermark, self.journal.last_time_ms(), keyspaces, routes, self.remembered.copy()),
            )
        };
        let (watermark, time_ms, keyspaces, routes, remembered) = marked;
        let manifest = Manifest {
            watermark,
            open_chain,
            time_ms,
            noted_from: self.kept.as_ref().map(Kept::noted_from),
            history_bytes: self.kept.as_ref().map(Kept::bytes_max),
            keyspaces: keyspaces.iter().map(|(keyspace, statistics)| (keyspace, *statistics)).collect(),
            engines: Vec::new(),
            routes: routes.names().into_iter().map(|(keyspace, name)| (keyspace, name.to_owned())).collect(),
            remembered: remembered.encode(),
            terms: self.terms.below(watermark),
            committed: None,
            is_of_older_format: false,
        };
        failpoint::pass(Failpoint::Marked);
        self.await_commit(&self.checkpointer, watermark);
        // An engine's durable state must never point past the durable log.
        self.journal.sync_blocking(manifest.watermark)?;
        self.finish_checkpoint(&engines, manifest)?;
        self.checkpointer.finished(self.options.clock.since(started));
        Ok(())
    }

    /// Position of the first record of a secondary's open chain.
    fn first_of_open_chain(&self) -> Option<Lsn> {
        self.open_chain.lock().as_ref().map(|(first, _)| *first)
    }

    fn finish_checkpoint(&self, engines: &[Arc<dyn Engine>], mut manifest: Manifest) -> Result<()> {
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
            self.retire_segments(log, engines, manifest.watermark)?;
        }
        failpoint::pass(Failpoint::Flushed);
        manifest.write(&directory.path)?;
        self.is_of_older_format.store(false, Ordering::Relaxed);
        failpoint::pass(Failpoint::ManifestWritten);
        for engine in engines {
            engine.checkpoint_is_durable(oldest)?;
        }
        self.retire_segments(log, engines, manifest.watermark)
    }

    /// Gives up segments below the watermark and the commit point that neither an engine nor a reader of the history
    /// needs any more.
    fn retire_segments(&self, log: &Log, engines: &[Arc<dyn Engine>], watermark: Lsn) -> Result<()> {
        let committed = if planted::active(Bug::UncommittedGivenUp) { watermark } else { self.committed() };
        let watermark = watermark.min(committed);
        let end = match &self.kept {
            Some(kept) => self.give_up_history(kept, watermark)?,
            None => segment_of(watermark.0),
        };
        let open_chain = self.first_of_open_chain().map_or(end, |first| segment_of(first.0));
        let end = end.min(log.oldest_shipped_segment(watermark)).min(open_chain);
        let mut numbers = log.segment_numbers();
        numbers.retain(|number| *number < end && engines.iter().all(|engine| engine.has_left_segment(*number)));
        log.retire(&numbers)?;
        if let Some(oldest) = log.segment_numbers().first() {
            self.terms.forget_before(Lsn(first_record(*oldest)));
        }
        Ok(())
    }
}
