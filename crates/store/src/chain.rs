//! Chains: commits that do not fit into one record of the log, or that other writers would wait for too long.

use crate::disk_room::Draw;
use crate::engines::Keeping;
use crate::failpoint::{self, Failpoint};
use crate::followers;
use crate::journal::{AppendedRecord, Journal};
use crate::statistics::CountChanges;
use crate::store::RecordInFlight;
use crate::{Batch, Effect, Effects, Location, Lsn, Noted, Result, SEGMENT_BYTES, STALL, StorageError, Store};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Usual number of effects: a few documents with their changed index keys. So many are decoded on the stack, because
/// the commit walks them four times.
const EFFECTS_USUAL: usize = 16;
/// Maximum number of effects that are decoded once for all four walks: so many, decoded, fit into the processor's L2
/// cache.
const EFFECTS_DECODED_MAX: usize = 1024;
/// A batch with more effects becomes a chain, because it keeps engines busy for too long: about 20 ms.
const EFFECTS_AT_ONCE_MAX: usize = 16 << 10;
/// A batch with more bytes becomes a chain too, because copying it takes as long.
const BYTES_AT_ONCE_MAX: usize = SEGMENT_BYTES as usize / 8;
/// Approximate bytes that other writers append while engines apply one effect. The place of a chain's last record is
/// reserved this far ahead for each of the chain's effects.
const AHEAD_BYTES_PER_EFFECT: u64 = 32;
const AHEAD_BYTES_MIN: u64 = 64 << 10;
/// Longest time that a chain waits for engines to flush.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(30);

/// Whether other writers would wait too long for a batch if it were one record with its place in their order.
pub(crate) fn holds_others_up(batch: &Batch<'_>) -> bool {
    (batch.effects_count() > EFFECTS_AT_ONCE_MAX || batch.len_bytes() > BYTES_AT_ONCE_MAX) && !batch.changes_keyspaces()
}

/// A chain with a place reserved for its last record. Dropping it puts the record there, or fails the log if the thread
/// panics.
struct Placing<'s> {
    store: &'s Store,
    lsn: Lsn,
}

impl Drop for Placing<'_> {
    fn drop(&mut self) {
        let Self { store, lsn } = *self;
        if std::thread::panicking() {
            store.journal.fail(StorageError::LogFailed);
        }
        if store.journal.place(store.options.clock.now_ms(), |moment| store.watermark.appended(moment)) {
            drop(RecordInFlight { store, lsn });
        }
    }
}

impl Store {
    /// Commits several batches as one, however long they are together: readers see all of them at once, and a crash
    /// leaves all of them or none. No two of them may concern the same key. Returns the LSN of the chain, and the
    /// location of the last document of the last batch. Other writers go on meanwhile; other chains wait.
    ///
    /// # Errors
    /// As [`Store::commit`].
    /// # Panics
    /// If there is no batch.
    pub fn commit_chain(&self, parts: &[Batch<'_>]) -> Result<(Lsn, Option<Location>)> {
        let last = parts.last().expect("a chain has a batch at least");
        let _uncounted = bunko_heap::Uncounted::begin();
        let growth_bytes: usize = parts.iter().map(Batch::growth_bytes).sum();
        self.make_room(|| parts.iter().try_for_each(|part| self.engines.admit(&part.effects(0), growth_bytes)))?;
        let draw = Self::draw(parts, growth_bytes);
        self.admit_to_disk(parts, draw)?;
        let appended = self.with_relief(draw, || self.append_and_apply_chain(parts, draw))?;
        self.note_growth();
        Ok((appended.lsn, last.last_location(appended.documents_position)))
    }

    /// Returns the chain's LSN, and the position of the last batch's documents.
    ///
    /// The chain does not hold the gate, because a checkpoint that waits for the gate keeps all other writers out.
    pub(crate) fn append_and_apply_chain(&self, parts: &[Batch<'_>], draw: Draw) -> Result<AppendedRecord> {
        let _chain = self.chain_in_turn()?;
        // The role cannot change before the chain ends.
        self.role.check()?;
        // Keeps reclaim away from the chain's records, whose documents are not known to any engine yet.
        let (_, _pin) = self.snapshots.pin(|| self.watermark.visible());
        for part in parts.iter().filter(|part| part.changes_keyspaces()) {
            self.engines.open_for(part.effects(0))?;
        }
        let nothing = Batch::new();
        let kept = |part| match self.keeping(part) {
            Keeping::Whole => part,
            Keeping::Place => &nothing,
        };
        let logged: Vec<&Batch<'_>> = parts.iter().map(kept).collect();
        let mut links = self.journal.append_links(&logged, draw)?;
        let effects: u64 = parts.iter().map(|part| part.effects_count() as u64).sum();
        let ahead_bytes = (effects * AHEAD_BYTES_PER_EFFECT).max(AHEAD_BYTES_MIN);
        let operations = parts.iter().map(Batch::operations).sum();
        let lsn = self.journal.reserve(operations, links[0].lsn, ahead_bytes, draw)?;
        // From here on engines have a part of the chain, so readers of the latest state must take snapshots.
        let _whole = self.commit_whole();
        let placing = Placing { store: self, lsn };
        let outcome = parts.iter().zip(&links).try_for_each(|(part, link)| self.apply_ahead(part, lsn, link));
        let outcome = outcome.map_err(|error| self.journal.fail(error));
        failpoint::pass(Failpoint::AppliedAhead);
        let mut changes = CountChanges::default();
        for part in parts {
            self.remembered.apply(part.remembered());
            changes.add(part.effects(0));
        }
        self.statistics.apply_changes(changes);
        let telling = self.begin_telling();
        drop(placing);
        outcome?;
        self.tell_followers(parts.iter().map(Batch::noted), lsn);
        drop(telling);
        let last = links.pop().expect("as many as batches");
        Ok(AppendedRecord { lsn, ..last })
    }

    /// Waits for the right to append a chain, until engines hold so little in memory that the chain will not hold other
    /// writers back. A chain may be as long as all that engines may hold, so many chains in a row could fill the
    /// memory. While it waits it holds nothing that a checkpoint needs. It goes on after [`FLUSH_WAIT_MAX`] in any
    /// case, because the flush may fail, for example on a full disk.
    ///
    /// # Errors
    /// [`StorageError::Closing`] if it would have to wait, and the store is about to be closed.
    fn chain_in_turn(&self) -> Result<MutexGuard<'_, ()>> {
        let ends = self.options.clock.now() + FLUSH_WAIT_MAX;
        loop {
            let turn = self.chain.lock();
            if self.is_at_leisure() || self.options.clock.now() >= ends {
                return Ok(turn);
            }
            drop(turn);
            if self.is_closing.load(Ordering::Relaxed) {
                return Err(StorageError::Closing);
            }
            self.checkpointer.ask();
            std::thread::sleep(STALL);
        }
    }

    /// Lets the engines apply a batch at a position that no view sees yet, a part of it at a time.
    fn apply_ahead(&self, batch: &Batch<'_>, lsn: Lsn, link: &AppendedRecord) -> Result<()> {
        if batch.changes_keyspaces() {
            self.engines.route(batch.effects(0));
            self.engines.note_drops(batch.effects(0));
        }
        self.followed.note(lsn, batch.effects(link.documents_position));
        let mut effects = batch.effects(link.documents_position);
        let mut decoded = Vec::with_capacity(batch.effects_count().min(EFFECTS_DECODED_MAX));
        loop {
            decoded.clear();
            decoded.extend(effects.by_ref().take(EFFECTS_DECODED_MAX));
            if decoded.is_empty() {
                return Ok(());
            }
            self.engines.apply(lsn, Effects::of_decoded(&decoded), self.views())?;
        }
    }

    /// Lets the engines apply a batch that has its position.
    pub(crate) fn apply(&self, batch: &Batch<'_>, appended: &AppendedRecord) -> Result<()> {
        if batch.changes_keyspaces() {
            self.engines.route(batch.effects(0));
            self.engines.note_drops(batch.effects(0));
        }
        self.remembered.apply(batch.remembered());
        let (mut few, mut many) = ([Effect::EMPTY; EFFECTS_USUAL], Vec::new());
        let slots = match batch.effects_count() {
            ..=EFFECTS_USUAL => few.as_mut_slice(),
            count => {
                many.resize(if count > EFFECTS_DECODED_MAX { 0 } else { count }, Effect::EMPTY);
                many.as_mut_slice()
            }
        };
        let effects = batch.effects(appended.documents_position).decoded(slots);
        self.followed.note(appended.lsn, effects.clone());
        self.statistics.apply(effects.clone());
        self.engines.apply(appended.lsn, effects, self.views())
    }

    /// Must be called before readers see a record: until the result is dropped, followers know that the record may not
    /// have been noted. `None` if there is no follower.
    pub(crate) fn begin_telling(&self) -> Option<followers::Telling<'_>> {
        match (&self.kept, &self.journal) {
            (Some(_), Journal::Log(log)) => log.followers().begin_telling(),
            _ => None,
        }
    }

    /// Tells the followers that the record at `lsn` concerns, and asks for a sync if there are listeners for durable
    /// records.
    pub(crate) fn tell_followers<'b>(&self, said: impl Iterator<Item = Noted<'b>>, lsn: Lsn) {
        if let (Some(_), Journal::Log(log)) = (&self.kept, &self.journal) {
            followers::tell(log, said, lsn);
        }
        if self.durable_bell().is_some_and(|bell| bell.is_listened_to()) {
            self.hurry(Lsn(lsn.0 + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::{Clock, EngineTable, KeyspaceId, RecordId, StoreOptions, Survival};
    use std::sync::atomic::AtomicBool;

    fn insertion(record: u64) -> Batch<'static> {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(7), RecordId(record), vec![7; 100]);
        batch
    }

    #[test]
    fn a_chain_goes_on_after_the_longest_wait_if_engines_do_not_flush() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (own, told) = fake("own", Survival::Durable);
        let clock = Clock::standing(1);
        let options = StoreOptions { clock: clock.clone(), ..StoreOptions::at_rest() };
        let store = Store::open(directory.path(), options, EngineTable::only(own)).expect("opens");
        *told.unflushed_bytes.lock() = 1 << 40;
        std::thread::scope(|scope| {
            let chain = scope.spawn(|| store.commit_chain(&[insertion(1), insertion(2)]));
            while !chain.is_finished() {
                std::thread::sleep(STALL);
                clock.advance(FLUSH_WAIT_MAX);
            }
            chain.join().expect("no panic").expect("it goes on");
        });
        *told.unflushed_bytes.lock() = 0;
        store.close().expect("closes");
    }

    #[test]
    fn a_chain_waits_for_engines_to_flush_and_is_refused_before_the_end() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (own, told) = fake("own", Survival::Durable);
        let store = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
        let is_flushed = AtomicBool::new(false);
        *told.unflushed_bytes.lock() = 1 << 40;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
                std::thread::sleep(20 * STALL);
                store.commit(&insertion(1)).expect("only chains wait");
                is_flushed.store(true, Ordering::SeqCst);
                *told.unflushed_bytes.lock() = 0;
            });
            store.commit_chain(&[insertion(2), insertion(3)]).expect("engines have flushed");
            assert!(is_flushed.load(Ordering::SeqCst), "it did not wait");
        });
        let applied = told.applied.lock().len();
        *told.unflushed_bytes.lock() = 1 << 40;
        store.end_waiting();
        let refused = store.commit_chain(&[insertion(4), insertion(5)]);
        assert!(matches!(refused, Err(StorageError::Closing)), "{refused:?}");
        assert_eq!(told.applied.lock().len(), applied);
        *told.unflushed_bytes.lock() = 0;
        store.commit_chain(&[insertion(4), insertion(5)]).expect("it need not wait");
        store.close().expect("closes");
    }
}
