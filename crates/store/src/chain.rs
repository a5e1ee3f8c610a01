//! Commits of more than one record of the log holds.

use crate::engines::Keeping;
use crate::failpoint::{self, Failpoint};
use crate::followers;
use crate::journal::{Appended, Journal};
use crate::store::Applying;
use crate::{Batch, Effect, Location, Lsn, Result, Store};

/// Effects of a few documents that are put, with the index keys that change, as most statements and transactions have them. They
/// are walked four times.
const EFFECTS_USUAL: usize = 16;
/// Most effects that are decoded once for all these walks: they take less memory so than the processor's second cache has.
const EFFECTS_DECODED_MAX: usize = 1024;

impl Store {
    /// Commits several batches as one, however long they are together: all are seen at once, and a crash leaves all of them
    /// or none. No two of them may concern the same key. Returns the LSN of the last one, and where its last document stands.
    ///
    /// # Errors
    /// As [`Store::commit`].
    /// # Panics
    /// Where there are not two batches at least.
    pub fn commit_chain(&self, parts: &[Batch<'_>]) -> Result<(Lsn, Option<Location>)> {
        let [_, .., last] = parts else { panic!("a chain has two batches at least") };
        let _uncounted = bunko_heap::Uncounted::begin();
        let growth_bytes: usize = parts.iter().map(Batch::growth_bytes).sum();
        self.make_room(|| parts.iter().try_for_each(|part| self.engines.admit(&part.effects(0), growth_bytes)))?;
        let appended = self.append_and_apply_chain(parts)?;
        if self.unflushed_bytes() > self.options.unflushed_bytes_max {
            self.checkpointer.ask();
        }
        Ok((appended.lsn, last.last_location(appended.documents_position)))
    }

    /// The place of the last one.
    fn append_and_apply_chain(&self, parts: &[Batch<'_>]) -> Result<Appended> {
        let _gate = self.gate.read();
        for part in parts.iter().filter(|part| part.changes_keyspaces()) {
            self.engines.open_for(part.effects(0))?;
        }
        let nothing = Batch::new();
        let kept = |part| match self.keeping(part) {
            Keeping::Whole => part,
            Keeping::Place => &nothing,
        };
        let logged: Vec<&Batch<'_>> = parts.iter().map(kept).collect();
        let in_order = |moment, last| self.watermark.appended_chain(moment, last);
        let mut places = self.journal.append_chain(&logged, (self.options.clock)(), in_order)?;
        // The watermark goes over all of them at once.
        let applying = Applying { store: self, lsn: places[0].lsn };
        failpoint::pass(Failpoint::Appended);
        let outcome = parts.iter().zip(&places).try_for_each(|(part, place)| self.apply(part, place));
        let telling = self.begin_telling();
        drop(applying);
        outcome.map_err(|error| self.journal.fail(error))?;
        let last = places.pop().expect("as many as batches");
        self.tell_followers(parts, last.lsn);
        drop(telling);
        Ok(last)
    }

    /// Lets the engines apply a batch that has its place.
    pub(crate) fn apply(&self, batch: &Batch<'_>, appended: &Appended) -> Result<()> {
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

    /// Before readers see a record: until this is dropped, it may not have been noted whom it concerns.
    pub(crate) fn begin_telling(&self) -> Option<followers::Telling<'_>> {
        match (&self.kept, &self.journal) {
            (Some(_), Journal::Log(log)) => log.followers().begin_telling(),
            _ => None,
        }
    }

    /// Has the record at `lsn` synced soon where anybody waits for what is on disk, and those told whom it concerns.
    pub(crate) fn tell_followers(&self, batches: &[Batch<'_>], lsn: Lsn) {
        if let (Some(_), Journal::Log(log)) = (&self.kept, &self.journal) {
            followers::tell(log, batches, lsn);
        }
        if self.durable_bell().is_some_and(|bell| bell.is_listened_to()) {
            self.hurry(Lsn(lsn.0 + 1));
        }
    }
}
