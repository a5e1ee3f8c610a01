//! The storage of a secondary: it appends another member's records as they are, and applies the committed ones.
//!
//! ```text
//! other member's log ──► append_raw ──► the log ── commit point ──► apply_committed ──► engines, watermark
//! ```
//! Appending and applying are separate. A record is appended as soon as it arrives, and counts for this member's
//! acknowledgement; it is applied once it is committed, because only then no failover can take it back.
//!
//! Records are applied one after the other in the order of the log, so each key's order is the primary's. All records of
//! a chain are applied when the last one is committed, at its position.
//!
//! **Invariant:** engines, watermark and manifest are never ahead of the commit point.
//! **Invariant:** while a chain is open, the log keeps its records, and reclaim stays away from them: no engine knows
//! their documents yet. The manifest names the first one, so that a start finds them again.

use crate::journal::Journal;
use crate::log::{Committed, CommittedLog};
use crate::store;
use crate::{
    Effect, Effects, EngineTable, Lag, Log, Lsn, Moment, RawReader, Result, StorageError, Store, StoreOptions,
};
use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of effects that are decoded at once.
const EFFECTS_DECODED_MAX: usize = 1024;

/// A store that follows another member's log.
pub struct Secondary {
    store: Arc<Store>,
    log: Arc<Log>,
    progress: Mutex<Progress>,
}

struct Progress {
    committed: CommittedLog,
    /// A record that has been read and not applied.
    pending: Option<Committed>,
}

/// The application of committed records. One thread at a time can have it.
pub struct Applying<'s> {
    store: &'s Store,
    log: &'s Arc<Log>,
    progress: MutexGuard<'s, Progress>,
    up_to: Lsn,
}

/// Facts about the effects of a record that is to be applied.
#[derive(Default)]
struct Extent {
    /// Bytes that need room; 0 if the record only removes.
    growth_bytes: usize,
    /// Number of documents that are put or deleted.
    documents: usize,
}

impl Secondary {
    /// Opens a data directory whose log is another member's. Records that end above `committed` are left in the log, and
    /// [`Secondary::apply_committed`] applies them.
    ///
    /// # Errors
    /// As [`Store::open`]; [`StorageError::UnknownEngine`] for an engine without a log.
    pub fn open(path: &Path, options: StoreOptions, table: EngineTable, committed: Lsn) -> Result<Self> {
        let (store, unapplied) = Store::open_directory(path, options, table, Some(committed))?;
        store.leave_older_format()?;
        let log = match &store.journal {
            Journal::Log(log) => Arc::clone(log),
            Journal::None(_) => return Err(StorageError::UnknownEngine { name: store.engine_name().to_owned() }),
        };
        let progress = Mutex::new(Progress { committed: CommittedLog::new(unapplied), pending: None });
        Ok(Self { store, log, progress })
    }

    /// The store, which shows what is applied.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Position behind the last record of the log, applied or not.
    pub fn log_end(&self) -> Lsn {
        self.log.next_lsn()
    }

    /// Appends whole records of another member's log, and returns the log's new end. [`Store::write`] and
    /// [`Store::on_durable`] tell when they are kept. Only one thread may append.
    ///
    /// # Errors
    /// [`StorageError::ForeignRecord`], and nothing is kept; [`StorageError::OutOfDiskSpace`] and
    /// [`StorageError::LogFailed`], after which the caller goes on from [`Secondary::log_end`].
    pub fn append_raw(&self, bytes: &[u8]) -> Result<Lsn> {
        self.log.append_raw(bytes)
    }

    /// Removes the records from `end` on, which the other members do not have. None of them may be applied, and no other
    /// thread may append.
    ///
    /// # Errors
    /// [`StorageError::AppliedAbove`]; [`StorageError::Corrupt`] if no record begins at `end`. After other errors the
    /// log has failed, and the next start carries the truncation out.
    pub fn truncate_log(&self, end: Lsn) -> Result<()> {
        let mut progress = self.progress.lock();
        let applied = progress.committed.position();
        if end < applied {
            return Err(StorageError::AppliedAbove { position: end.0, applied: applied.0 });
        }
        progress.committed.forget_window();
        self.log.truncate_to(end)
    }

    /// Applies all records that end at or before `up_to`, the commit point. Returns the position up to which views now
    /// see everything.
    ///
    /// # Errors
    /// As [`Applying::apply`].
    pub fn apply_committed(&self, up_to: Lsn) -> Result<Lsn> {
        let mut applying = self.applying(up_to)?;
        while applying.advance()? {
            applying.apply()?;
        }
        Ok(self.store.visible_end())
    }

    /// Begins to apply records that end at or before `up_to`, the commit point.
    ///
    /// # Errors
    /// [`StorageError::LogFailed`] if the log has failed.
    pub fn applying(&self, up_to: Lsn) -> Result<Applying<'_>> {
        if self.log.has_failed() {
            return Err(StorageError::LogFailed);
        }
        let (progress, up_to) = (self.progress.lock(), up_to.min(self.log.next_lsn()));
        Ok(Applying { store: &self.store, log: &self.log, progress, up_to })
    }
}

impl Applying<'_> {
    /// Turns to the next record, or to all records of a chain; false if all up to the commit point are applied. A record
    /// stays the next one until it is applied. Waits for engines that lag behind.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if there is no valid record where one should be.
    pub fn advance(&mut self) -> Result<bool> {
        if self.store.lag() != Lag::None {
            self.store.catch_up();
        }
        let progress = &mut *self.progress;
        if progress.pending.is_none() && progress.committed.position() < self.up_to {
            self.log.write(Lsn(self.up_to.0 - 1))?;
            progress.pending = progress.committed.next(self.log, self.up_to)?;
            // An applied chain is forgotten once views see it.
            if let Some(first) = progress.committed.chain.first() {
                self.store.note_open_chain(first);
            }
        }
        Ok(progress.pending.is_some())
    }

    /// Calls `visit` with the effects of each part of the next record.
    ///
    /// # Errors
    /// As [`Applying::advance`] and as `visit`.
    pub fn each_part(&mut self, visit: &mut dyn FnMut(Effects<'_>) -> Result<()>) -> Result<()> {
        let Progress { committed, pending } = &mut *self.progress;
        pending.as_ref().map_or(Ok(()), |record| committed.each_part(self.log, record, visit))
    }

    /// Applies the next record; on return every reader sees it. Returns its position.
    ///
    /// # Errors
    /// [`StorageError::OutOfMemory`], [`StorageError::MapFull`] and [`StorageError::Corrupt`] before it is applied; it
    /// stays the next record. If an engine cannot apply it, the log fails.
    /// # Panics
    /// If [`Applying::advance`] has not found a record.
    pub fn apply(&mut self) -> Result<Lsn> {
        let _uncounted = bunko_heap::Uncounted::begin();
        let record = self.progress.pending.as_ref().expect("a record was found");
        let (moment, is_chain) = (record.moment, record.parts.len() > 1);
        let length_bytes = record.parts.iter().map(|(_, length)| *length as usize).sum();
        let extent = self.admit(moment.lsn, length_bytes)?;
        let outcome = self.apply_admitted(moment, is_chain, &extent);
        outcome.map_err(|error| self.log.fail(error))?;
        self.progress.pending = None;
        if self.progress.committed.chain.first().is_none() {
            *self.store.open_chain.lock() = None;
        }
        self.store.note_growth();
        Ok(moment.lsn)
    }

    /// Asks the engines for room.
    fn admit(&mut self, at: Lsn, length_bytes: usize) -> Result<Extent> {
        let (mut extent, mut is_drop, mut is_removal) = (Extent::default(), false, true);
        let (store, log) = (self.store, self.log);
        self.each_part(&mut |effects| {
            for effect in effects {
                is_drop |= matches!(effect, Effect::DropKeyspace { .. });
                is_removal &= matches!(effect, Effect::DeleteRecord { .. } | Effect::DeleteKey { .. });
                extent.documents +=
                    usize::from(matches!(effect, Effect::PutRecord { .. } | Effect::DeleteRecord { .. }));
                if matches!(effect, Effect::AdoptFile { .. } | Effect::PlaceRecord { .. }) {
                    return Err(log.corrupt_at(at, "a record of documents in a file that only its writer has"));
                }
            }
            Ok(())
        })?;
        if !is_drop && !is_removal {
            extent.growth_bytes = length_bytes;
        }
        let growth_bytes = extent.growth_bytes;
        self.each_part(&mut |effects| {
            store.engines.open_for(effects.clone())?;
            store.make_room(|| store.engines.admit(&effects, growth_bytes))
        })?;
        Ok(extent)
    }

    fn apply_admitted(&mut self, moment: Moment, is_chain: bool, extent: &Extent) -> Result<()> {
        let store = self.store;
        // As on the primary: a checkpoint that waits for a long chain must not keep readers out meanwhile.
        let _no_checkpoint = is_chain.then(|| store.chain.lock());
        let _gate = (!is_chain).then(|| store.gate.read());
        let _whole = (extent.documents > 1).then(|| store.commit_whole());
        store.watermark.appended(moment);
        let applying = store::Applying { store, lsn: moment.lsn };
        let outcome = if is_chain {
            let applied = self.each_part(&mut |effects| store.apply_effects(moment.lsn, &effects));
            applied.and_then(|()| {
                self.each_part(&mut |effects| {
                    store.count_effects(&effects);
                    Ok(())
                })
            })
        } else {
            self.each_part(&mut |effects| {
                store.count_effects(&effects);
                store.apply_effects(moment.lsn, &effects)
            })
        };
        let telling = store.begin_telling();
        drop(applying);
        outcome?;
        if telling.is_some() {
            self.each_part(&mut |effects| {
                store.tell_followers(std::iter::once(effects.noted()), moment.lsn);
                Ok(())
            })?;
        }
        drop(telling);
        Ok(())
    }
}

impl Drop for Applying<'_> {
    fn drop(&mut self) {
        // Records are often on disk before they are applied, so no sync wakes the readers of the log's end.
        if let Some(bell) = self.store.durable_bell() {
            bell.ring();
        }
    }
}

impl Store {
    /// Reads the log as raw bytes from `from` on, the position of a record or the end of the log. The log keeps what the
    /// reader still has to read, up to about `kept_bytes_max` bytes.
    ///
    /// # Errors
    /// [`StorageError::HistoryLost`] if the log at `from` has been given up, and for a store without a log.
    pub fn read_raw_log(&self, from: Lsn, kept_bytes_max: u64) -> Result<RawReader> {
        match &self.journal {
            Journal::Log(log) => log.read_raw_from(from, kept_bytes_max),
            Journal::None(_) => Err(StorageError::HistoryLost),
        }
    }

    fn note_open_chain(&self, first: Lsn) {
        let mut open = self.open_chain.lock();
        if open.as_ref().is_none_or(|(known, _)| *known != first) {
            *open = Some((first, self.snapshots.pin(|| self.watermark.visible()).1));
        }
    }

    /// Lets the engines apply effects from the log.
    fn apply_effects(&self, lsn: Lsn, effects: &Effects<'_>) -> Result<()> {
        self.engines.route(effects.clone());
        self.engines.note_drops(effects.clone());
        self.followed.note(lsn, effects.clone());
        let mut rest = effects.clone();
        let mut decoded = Vec::new();
        loop {
            decoded.clear();
            decoded.extend(rest.by_ref().take(EFFECTS_DECODED_MAX));
            if decoded.is_empty() {
                return Ok(());
            }
            self.engines.apply(lsn, Effects::of_decoded(&decoded), self.views())?;
        }
    }

    /// Counts effects from the log, and remembers their values.
    fn count_effects(&self, effects: &Effects<'_>) {
        self.remembered.apply(effects.clone().noted());
        self.statistics.apply(effects.clone());
    }
}

#[cfg(test)]
mod tests;
