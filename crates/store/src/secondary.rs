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
use crate::snapshots::{Pin, Snapshots};
use crate::store;
use crate::{Effect, Effects, Lag, Log, Lsn, Moment, RawReader, Result, StorageError, Store};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of effects that are decoded at once.
const EFFECTS_DECODED_MAX: usize = 1024;
/// Stands for no open chain.
const NO_CHAIN: u64 = u64::MAX;

/// The state of a secondary.
pub(crate) struct Secondary {
    progress: Mutex<Progress>,
    /// Position of the first record of the open chain, or [`NO_CHAIN`]. It may name a chain that has just been applied,
    /// but never misses one.
    open_chain: AtomicU64,
}

struct Progress {
    log: CommittedLog,
    /// A record that has been read and not applied.
    pending: Option<Committed>,
    /// Keeps reclaim away from the records of the open chain.
    pin: Option<Pin>,
}

/// The application of committed records. One thread at a time can have it.
pub struct Applying<'s> {
    store: &'s Store,
    log: &'s Arc<Log>,
    secondary: &'s Secondary,
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
    pub fn new(log: CommittedLog, snapshots: &Arc<Snapshots>) -> Self {
        let first = log.chain.first();
        let pin = first.map(|first| snapshots.pin(|| first).1);
        let open_chain = AtomicU64::new(first.map_or(NO_CHAIN, |first| first.0));
        Self { progress: Mutex::new(Progress { log, pending: None, pin }), open_chain }
    }
}

impl Store {
    /// Whether the store applies another member's records.
    pub fn is_secondary(&self) -> bool {
        self.secondary.is_some()
    }

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

    /// Position behind the last record of the log; with records that are not applied yet, it is above
    /// [`Store::visible_end`].
    pub fn log_end(&self) -> Lsn {
        Lsn(self.journal.statistics().next_lsn)
    }

    /// Appends whole records of another member's log, and returns the log's new end. [`Store::write`] and
    /// [`Store::on_durable`] tell when they are kept. Only one thread may append.
    ///
    /// # Errors
    /// [`StorageError::ForeignRecord`], and nothing is kept; [`StorageError::OutOfDiskSpace`] and
    /// [`StorageError::LogFailed`], after which the caller goes on from [`Store::log_end`].
    pub fn append_raw(&self, bytes: &[u8]) -> Result<Lsn> {
        self.secondary()?.0.append_raw(bytes)
    }

    /// Removes the records from `end` on, which the other members do not have. None of them may be applied, and no other
    /// thread may append.
    ///
    /// # Errors
    /// [`StorageError::AppliedAbove`]; [`StorageError::Corrupt`] if no record begins at `end`. After other errors the
    /// log has failed, and the next start carries the truncation out.
    pub fn truncate_log(&self, end: Lsn) -> Result<()> {
        let (log, secondary) = self.secondary()?;
        let progress = secondary.progress.lock();
        let applied = progress.log.position();
        if end < applied {
            return Err(StorageError::AppliedAbove { position: end.0, applied: applied.0 });
        }
        log.truncate_to(end)
    }

    /// Applies all records that end at or before `up_to`, the commit point. Returns the position up to which views now
    /// see everything.
    ///
    /// # Errors
    /// As [`Applying::apply`].
    pub fn apply_committed(&self, up_to: Lsn) -> Result<Lsn> {
        let mut applying = self.applying(up_to)?;
        while applying.next()? {
            applying.apply()?;
        }
        Ok(self.visible_end())
    }

    /// Begins to apply records that end at or before `up_to`, the commit point.
    ///
    /// # Errors
    /// [`StorageError::LogFailed`] if the log has failed or the store is not a secondary.
    pub fn applying(&self, up_to: Lsn) -> Result<Applying<'_>> {
        let (log, secondary) = self.secondary()?;
        let progress = secondary.progress.lock();
        Ok(Applying { store: self, log, secondary, progress, up_to: up_to.min(log.next_lsn()) })
    }

    /// Position of the first record of the chain that is open; `None` if none is, and for a store that writes its own
    /// log.
    pub(crate) fn open_chain(&self) -> Option<Lsn> {
        let first = self.secondary.as_ref()?.open_chain.load(Ordering::SeqCst);
        (first != NO_CHAIN).then_some(Lsn(first))
    }

    fn secondary(&self) -> Result<(&Arc<Log>, &Secondary)> {
        match (&self.journal, &self.secondary) {
            (Journal::Log(log), Some(secondary)) if !log.has_failed() => Ok((log, secondary)),
            _ => Err(StorageError::LogFailed),
        }
    }
}

impl Applying<'_> {
    /// Turns to the next record, or to all records of a chain; false if all up to the commit point are applied. A record
    /// stays the next one until it is applied. Waits for engines that lag behind.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if there is no valid record where one should be.
    pub fn next(&mut self) -> Result<bool> {
        if self.store.lag() != Lag::None {
            self.store.catch_up();
        }
        let progress = &mut *self.progress;
        if progress.pending.is_none() && progress.log.position() < self.up_to {
            self.log.write(Lsn(self.up_to.0 - 1))?;
            let before = progress.log.chain.first();
            progress.pending = progress.log.next(self.log, self.up_to)?;
            let open = progress.log.chain.first();
            if open.is_some() && open != before {
                let (_, pin) = self.store.snapshots.pin(|| self.store.watermark.visible());
                progress.pin = Some(pin);
            }
            // An applied chain is forgotten once views see it.
            if let Some(open) = open {
                self.secondary.open_chain.store(open.0, Ordering::SeqCst);
            }
        }
        Ok(progress.pending.is_some())
    }

    /// Calls `visit` with the effects of each part of the next record.
    ///
    /// # Errors
    /// As [`Applying::next`] and as `visit`.
    pub fn each_part(&mut self, visit: &mut dyn FnMut(Effects<'_>) -> Result<()>) -> Result<()> {
        let Progress { log, pending, .. } = &mut *self.progress;
        pending.as_ref().map_or(Ok(()), |record| log.each_part(self.log, record, visit))
    }

    /// Applies the next record; on return every reader sees it. Returns its position.
    ///
    /// # Errors
    /// [`StorageError::OutOfMemory`], [`StorageError::MapFull`] and [`StorageError::Corrupt`] before it is applied; it
    /// stays the next record. If an engine cannot apply it, the log fails.
    /// # Panics
    /// If [`Applying::next`] has not found a record.
    pub fn apply(&mut self) -> Result<Lsn> {
        let _uncounted = bunko_heap::Uncounted::begin();
        let record = self.progress.pending.as_ref().expect("a record was found");
        let (moment, is_chain) = (record.moment, record.parts.len() > 1);
        let length_bytes = record.parts.iter().map(|(_, length)| *length as usize).sum();
        let extent = self.admit(moment.lsn, length_bytes)?;
        let outcome = self.apply_admitted(moment, is_chain, &extent);
        outcome.map_err(|error| self.log.fail(error))?;
        self.progress.pending = None;
        if is_chain {
            self.progress.pin = None;
            self.secondary.open_chain.store(NO_CHAIN, Ordering::SeqCst);
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
            applied.and_then(|()| self.each_part(&mut |effects| store.count_effects(&effects)))
        } else {
            self.each_part(&mut |effects| {
                store.count_effects(&effects)?;
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

impl Store {
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
    fn count_effects(&self, effects: &Effects<'_>) -> Result<()> {
        self.remembered.apply(effects.clone().noted());
        self.statistics.apply(effects.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
