//! The storage of a secondary: it appends another member's records as they are, and applies the committed ones.
//!
//! ```text
//! other member's log ──► append_raw ──► the log ── commit point ──► apply_committed ──► engines, watermark
//! ```
//! Appending and applying are separate. A record is appended as soon as it arrives, and counts for this member's
//! acknowledgement; it is applied once it is committed, because from then on no failover can take it back. A member
//! that becomes primary applies the rest of its log first, because it keeps all of it.
//!
//! Records are applied one after the other in the order of the log, so each key's order is the primary's. All records
//! of a chain are applied when the last one is committed, at its position.
//!
//! **Invariant:** a secondary applies nothing above the commit point. Only records that were applied while this member
//! was primary, or became it, may be ahead of the commit point.
//! **Invariant:** while a chain is open, the log keeps its records, and reclaim stays away from them: no engine knows
//! their documents yet. The manifest names the first one, so that a start finds them again.

use crate::journal::Journal;
use crate::log::{Committed, CommittedLog, OpenChain};
use crate::role::Role;
use crate::statistics::CountChanges;
use crate::store;
use crate::{Effect, Effects, Lag, Log, Lsn, Moment, Position, RawReader, Result, StorageError, Store};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of effects that are decoded at once.
const EFFECTS_DECODED_MAX: usize = 1024;

/// Applies committed records of a secondary. One thread at a time can have it.
pub struct Applying<'s> {
    store: &'s Store,
    log: &'s Arc<Log>,
    /// Where a later application goes on. It is set at the end of this one.
    unapplied: MutexGuard<'s, (Lsn, OpenChain)>,
    committed: CommittedLog,
    /// A record that has been read and not applied.
    pending: Option<Committed>,
    up_to: Lsn,
    has_applied: bool,
}

/// Facts about the effects of a record that is to be applied.
#[derive(Default)]
struct Extent {
    /// Whether anything is put or created.
    grows: bool,
    /// Whether a keyspace is dropped.
    drops: bool,
    changes_keyspaces: bool,
    /// Number of documents that are put or deleted.
    documents: usize,
}

impl Store {
    /// Appends whole records of another member's log to the log of a secondary, and returns the log's new position.
    /// `after` is this log's position, as the sender knows it. The records survive a kill once [`Store::write`] has
    /// returned, and a power cut once [`Store::on_durable`] has called back.
    ///
    /// # Errors
    /// [`StorageError::NotSecondary`]; [`StorageError::Diverged`] if `after` is not the log's position, and
    /// [`StorageError::ForeignRecord`]: nothing is kept. [`StorageError::OutOfDiskSpace`] and
    /// [`StorageError::LogFailed`], after which the caller goes on from [`Store::last_position`].
    pub fn append_raw(&self, after: Position, bytes: &[u8]) -> Result<Position> {
        let _appending = self.appending.lock();
        let log = self.secondary_log()?;
        let found = self.last_position();
        if after != found {
            return Err(StorageError::Diverged { asked: after, found });
        }
        log.append_raw(bytes)?;
        Ok(self.last_position())
    }

    /// Removes the records after `to` from the log of a secondary, because the other members do not have them.
    ///
    /// # Errors
    /// [`StorageError::NotSecondary`]; [`StorageError::AppliedAbove`] and [`StorageError::CommittedAbove`], if records
    /// after `to` are applied or committed; [`StorageError::Diverged`] if this log never had
    /// that position; [`StorageError::Corrupt`] if no record begins there. After other errors the log has failed, and
    /// the next start carries the truncation out.
    pub fn truncate_log(&self, to: Position) -> Result<()> {
        let _appending = self.appending.lock();
        let unapplied = self.unapplied.lock();
        let (log, end) = (self.secondary_log()?, Lsn(to.end));
        self.check_was_at(to)?;
        let applied = unapplied.0;
        if end < applied {
            return Err(StorageError::AppliedAbove { position: end.0, applied: applied.0 });
        }
        self.check_not_committed(end)?;
        log.truncate_to(end)
    }

    /// Checks that the log has this position.
    /// # Errors
    /// [`StorageError::Diverged`] unless the log has this position.
    pub(crate) fn check_was_at(&self, position: Position) -> Result<()> {
        let found = self.last_position();
        let term = self.terms.before(Lsn(position.end)).unwrap_or(0);
        let is_known = position.end <= found.end && position.term == term;
        is_known.then_some(()).ok_or(StorageError::Diverged { asked: position, found })
    }

    /// Checks that no record after `end` is committed.
    /// # Errors
    /// [`StorageError::CommittedAbove`] if records after `end` are committed.
    pub(crate) fn check_not_committed(&self, end: Lsn) -> Result<()> {
        let committed = self.committed_part_end();
        if end < committed {
            return Err(StorageError::CommittedAbove { position: end.0, committed: committed.0 });
        }
        Ok(())
    }

    /// Applies all records of a secondary's log that end at or below the commit point. Returns the position up to which
    /// views now see everything.
    ///
    /// # Errors
    /// As [`Store::applying`] and [`Applying::apply`].
    pub fn apply_committed(&self) -> Result<Lsn> {
        let mut applying = self.applying(self.committed_part_end())?;
        while applying.advance()? {
            applying.apply()?;
        }
        drop(applying);
        Ok(self.visible_end())
    }

    /// Begins to apply records that end at or before `up_to`.
    ///
    /// # Errors
    /// [`StorageError::NotSecondary`]; [`StorageError::LogFailed`] if the log has failed.
    pub fn applying(&self, up_to: Lsn) -> Result<Applying<'_>> {
        let mut unapplied = self.unapplied.lock();
        let log = self.secondary_log()?;
        if log.has_failed() {
            return Err(StorageError::LogFailed);
        }
        let up_to = up_to.min(log.next_lsn());
        let committed = CommittedLog::new((unapplied.0, std::mem::take(&mut unapplied.1)));
        Ok(Applying { store: self, log, unapplied, committed, pending: None, up_to, has_applied: false })
    }

    /// The log of a secondary. The caller holds `appending` or `unapplied`, so that the role stays.
    pub(crate) fn secondary_log(&self) -> Result<&Arc<Log>> {
        if self.is_rolled_back.load(Ordering::Acquire) {
            return Err(StorageError::RolledBack);
        }
        match &self.journal {
            Journal::Log(log) if self.role.get() == Role::Secondary => Ok(log),
            _ => Err(StorageError::NotSecondary),
        }
    }
}

impl Applying<'_> {
    /// Turns to the next record, or to all records of a chain; false if all up to the commit point are applied. A
    /// record stays the next one until it is applied. Waits for engines that lag behind.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if there is no valid record where one should be.
    pub fn advance(&mut self) -> Result<bool> {
        if self.store.lag() != Lag::None {
            self.store.catch_up();
        }
        if self.pending.is_none() && self.committed.position() < self.up_to {
            self.log.write(Lsn(self.up_to.0 - 1))?;
            self.pending = self.committed.next(self.log, self.up_to)?;
            // An applied chain is forgotten once views see it.
            if let Some(first) = self.committed.chain.first() {
                self.store.note_open_chain(first);
            }
        }
        Ok(self.pending.is_some())
    }

    /// Position, end and time of the next record; `None` if [`Applying::advance`] has found none.
    pub fn moment(&self) -> Option<Moment> {
        self.pending.as_ref().map(|record| record.moment)
    }

    /// Calls `visit` with the effects of each part of the next record.
    ///
    /// # Errors
    /// As [`Applying::advance`] and as `visit`.
    pub fn each_part(&mut self, visit: &mut dyn FnMut(Effects<'_>) -> Result<()>) -> Result<()> {
        let log = self.log;
        let Self { committed, pending, .. } = self;
        pending.as_ref().map_or(Ok(()), |record| committed.each_part(log, record, visit))
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
        let record = self.pending.as_ref().expect("a record was found");
        let moment = record.moment;
        if record.is_chain() {
            self.apply_chain(moment)?;
        } else {
            self.apply_one(moment)?;
        }
        self.pending = None;
        self.has_applied = true;
        if self.committed.chain.first().is_none() {
            *self.store.open_chain.lock() = None;
        }
        self.store.note_growth();
        Ok(moment.lsn)
    }

    /// Applies a record that is not a chain. Its effects are decoded once for all walks, unless there are very many.
    fn apply_one(&mut self, moment: Moment) -> Result<()> {
        let (store, log) = (self.store, self.log);
        let Self { committed, pending, .. } = self;
        let record = pending.as_ref().expect("a record was found");
        let effects = committed.effects_of(log, record)?;
        let first: Vec<_> = effects.clone().take(EFFECTS_DECODED_MAX + 1).collect();
        let decoded = if first.len() > EFFECTS_DECODED_MAX { effects.clone() } else { Effects::of_decoded(&first) };
        let mut extent = Extent::default();
        extent.add(decoded.clone()).map_err(|found| log.corrupt_at(moment.lsn, found))?;
        let growth_bytes = extent.growth_bytes(record.length_bytes());
        if extent.changes_keyspaces {
            store.engines.open_for(decoded.clone())?;
        }
        store.make_room(|| store.engines.admit(&decoded, growth_bytes))?;
        let applied = store.apply_record(moment, &effects, &decoded, &extent);
        applied.map_err(|error| log.fail(error))
    }

    /// Applies all records of a chain.
    fn apply_chain(&mut self, moment: Moment) -> Result<()> {
        let (store, log) = (self.store, self.log);
        let length_bytes = self.pending.as_ref().map_or(0, Committed::length_bytes);
        let mut extent = Extent::default();
        self.each_part(&mut |effects| extent.add(effects).map_err(|found| log.corrupt_at(moment.lsn, found)))?;
        let growth_bytes = extent.growth_bytes(length_bytes);
        self.each_part(&mut |effects| {
            store.engines.open_for(effects.clone())?;
            store.make_room(|| store.engines.admit(&effects, growth_bytes))
        })?;
        // As on the primary: a checkpoint that waits for a long chain must not keep readers out meanwhile.
        let _no_checkpoint = store.chain.lock();
        let _whole = store.commit_whole();
        store.watermark.appended(moment);
        let applying = store::RecordInFlight { store, lsn: moment.lsn };
        let applied = self.each_part(&mut |effects| store.apply_effects(moment.lsn, &effects, &extent));
        let mut changes = CountChanges::default();
        let outcome = applied.and_then(|()| {
            self.each_part(&mut |effects| {
                store.remembered.apply(effects.clone().noted());
                changes.add(effects);
                Ok(())
            })
        });
        store.statistics.apply_changes(changes);
        let telling = store.begin_telling();
        drop(applying);
        outcome.map_err(|error| log.fail(error))?;
        if telling.is_some() {
            self.each_part(&mut |effects| {
                store.tell_followers(std::iter::once(effects.noted()), moment.lsn);
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Extent {
    /// Adds the facts about these effects.
    /// # Errors
    /// A description of an effect that a secondary cannot apply.
    fn add(&mut self, effects: Effects<'_>) -> Result<(), &'static str> {
        for effect in effects {
            match effect {
                Effect::PutRecord { .. } => (self.documents, self.grows) = (self.documents + 1, true),
                Effect::DeleteRecord { .. } => self.documents += 1,
                Effect::DeleteKey { .. } => {}
                Effect::PutKey { .. } | Effect::PutPrimaryKey { .. } => self.grows = true,
                Effect::CreateKeyspace { .. } => (self.changes_keyspaces, self.grows) = (true, true),
                Effect::DropKeyspace { .. } => (self.changes_keyspaces, self.drops) = (true, true),
                Effect::AdoptFile { .. } | Effect::PlaceRecord { .. } => {
                    return Err("a record of documents in a file that only its writer has");
                }
            }
        }
        Ok(())
    }

    /// Bytes that need room, of records of that length; 0 if they make room.
    fn growth_bytes(&self, length_bytes: usize) -> usize {
        if self.grows && !self.drops { length_bytes } else { 0 }
    }
}

impl Drop for Applying<'_> {
    fn drop(&mut self) {
        *self.unapplied = self.committed.end_at(self.pending.take());
        // A thread that looks for records again after each ring would never rest while a chain is open.
        if !self.has_applied {
            return;
        }
        // Records are often on disk before they are applied, so no sync wakes the readers of the log's end: they are
        // woken here.
        if let Some(bell) = self.store.durable_bell() {
            bell.ring();
        }
        self.store.moved.ring();
    }
}

impl Store {
    /// Reads the log as raw bytes from `from` on, the position of a record or the end of the log. The log keeps what
    /// the reader still has to read, up to about `kept_bytes_max` bytes.
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

    /// Applies a record for which there is room. `decoded` are the same effects as `effects`, without notes.
    fn apply_record(
        &self,
        moment: Moment,
        effects: &Effects<'_>,
        decoded: &Effects<'_>,
        extent: &Extent,
    ) -> Result<()> {
        let _gate = self.gate.read();
        let _whole = (extent.documents > 1).then(|| self.commit_whole());
        self.watermark.appended(moment);
        let applying = store::RecordInFlight { store: self, lsn: moment.lsn };
        self.remembered.apply(effects.clone().noted());
        self.statistics.apply(decoded.clone());
        let outcome = self.apply_effects(moment.lsn, decoded, extent);
        let telling = self.begin_telling();
        drop(applying);
        outcome?;
        if telling.is_some() {
            self.tell_followers(std::iter::once(effects.clone().noted()), moment.lsn);
        }
        Ok(())
    }

    /// Lets the engines apply effects from the log.
    fn apply_effects(&self, lsn: Lsn, effects: &Effects<'_>, extent: &Extent) -> Result<()> {
        if extent.changes_keyspaces {
            self.engines.route(effects.clone());
            self.engines.note_drops(effects.clone());
        }
        self.followed.note(lsn, effects.clone());
        if effects.clone().next().is_none() {
            return Ok(());
        }
        if effects.is_decoded() {
            return self.engines.apply(lsn, effects.clone(), self.views());
        }
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
}

#[cfg(test)]
mod tests;
