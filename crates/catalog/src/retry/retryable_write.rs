//! One command's retryable write: the unit of work that its operation belongs to.

use super::history::{Told, WriteHistory};
use super::record::{self, Ranges, WriteRecord};
use super::{Outcome, SessionName, WRITE_HISTORIES};
use crate::{Catalog, from_storage};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Batch, Keeping, Location, Lsn, RecordId};
use parking_lot::Mutex;

/// Outdated records that go with one write, besides the one that is replaced.
const GIVEN_UP_MAX: usize = 256;

/// A write with a session and a number, while its session is held for it.
pub struct RetryableWrite {
    session: SessionName,
    number: i64,
    turn: Mutex<Turn>,
}

/// What is being done.
struct Turn {
    history: WriteHistory,
    statements: Statements,
    outcome: Outcome,
    /// The record of the log that has the last statement that was done.
    written: Option<Lsn>,
}

/// Which statements the next batch does.
enum Statements {
    None,
    /// Each document of an insert is one; those that the batch at hand has so far.
    Inserts {
        by_position: StatementNumbers,
        done: Ranges,
    },
    /// All that the next batch does is these.
    These(Ranges),
}

/// The numbers of statements, by position.
#[derive(Clone, Debug)]
pub enum StatementNumbers {
    /// They follow each other.
    From(i32),
    /// They do not.
    Each(Vec<i32>),
}

impl StatementNumbers {
    /// That of the statement there, if there is one.
    pub fn at(&self, position: usize) -> Option<i32> {
        match self {
            Self::From(first) => Some(first.wrapping_add(position as i32)),
            Self::Each(each) => each.get(position).copied(),
        }
    }
}

impl RetryableWrite {
    /// A write under that number, which is not smaller than the history's.
    pub fn new(session: SessionName, mut history: WriteHistory, number: i64) -> Self {
        history.turn_to(number);
        let turn = Turn { history, statements: Statements::None, outcome: Outcome::One, written: None };
        Self { session, number, turn: Mutex::new(turn) }
    }

    /// The one that an operation's writes belong to, if they do.
    pub fn of(operation: &dyn OperationSource) -> Option<&Self> {
        operation.unit()?.downcast_ref()
    }

    /// Gives the history back, and the record of the log that has the last statement that was done, if any was; nothing is
    /// recorded any more.
    pub fn end(&self) -> (WriteHistory, Option<Lsn>) {
        let mut turn = self.turn.lock();
        turn.statements = Statements::None;
        (std::mem::take(&mut turn.history), turn.written)
    }

    /// The write's number.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// What a statement answered that was done before, and the record of the log that it is in, where the log may not be
    /// on disk so far.
    /// # Errors
    /// Those of the storage.
    pub fn outcome_of(&self, catalog: &Catalog, statement: i32) -> Result<Option<(Outcome, Option<Lsn>)>> {
        let Some(done) = self.turn.lock().history.find(statement) else { return Ok(None) };
        let Told::Record(record, _) = done.told else { return Ok(Some((Outcome::One, done.lsn))) };
        let mut bytes = Vec::new();
        let found = catalog.store.latest().record(WRITE_HISTORIES, record, &mut bytes).map_err(from_storage)?;
        debug_assert!(found.is_some(), "a record stays until its session turns to another number");
        Ok(Some((WriteRecord::decode(&bytes)?.outcome, done.lsn)))
    }

    /// From now on documents are inserted that are these statements, by position.
    pub fn begin_inserts(&self, statements: StatementNumbers) {
        self.set(Statements::Inserts { by_position: statements, done: Ranges::default() });
    }

    /// The next batch does one statement.
    pub fn begin(&self, statement: i32) {
        self.set(Statements::These(Ranges::one(statement)));
    }

    /// The next batch does these statements, and no others.
    pub fn begin_some(&self, statements: impl IntoIterator<Item = i32>) {
        self.set(Statements::These(statements.into_iter().collect()));
    }

    /// The statements that an insert began with, by position.
    pub fn inserts(&self) -> StatementNumbers {
        match &self.turn.lock().statements {
            Statements::Inserts { by_position, .. } => by_position.clone(),
            Statements::None | Statements::These(_) => StatementNumbers::Each(Vec::new()),
        }
    }

    fn set(&self, statements: Statements) {
        let mut turn = self.turn.lock();
        turn.statements = statements;
        turn.outcome = Outcome::One;
    }

    /// Says what the statement answers if the next batch is committed; the last word counts.
    pub fn set_outcome(&self, outcome: Outcome) {
        self.turn.lock().outcome = outcome;
    }

    /// A batch of inserts begins: what a batch before did not commit was not done.
    pub(crate) fn begin_batch(&self) {
        if let Statements::Inserts { done, .. } = &mut self.turn.lock().statements {
            done.clear();
        }
    }

    /// The batch has the document at that position.
    pub(crate) fn note_inserted(&self, position: usize) {
        if let Statements::Inserts { by_position, done } = &mut self.turn.lock().statements
            && let Some(statement) = by_position.at(position)
        {
            done.add(statement);
        }
    }

    /// Commits a batch together with word of what it does.
    /// # Errors
    /// As `Store::commit`.
    pub(crate) fn commit(&self, catalog: &Catalog, batch: &mut Batch<'_>) -> bunko_store::Result<Lsn> {
        let mut turn = self.turn.lock();
        let Turn { history, statements, outcome, written } = &mut *turn;
        let (Statements::Inserts { done, .. } | Statements::These(done)) = &*statements else {
            return catalog.store.commit(batch);
        };
        if done.is_empty() {
            return catalog.store.commit(batch);
        }
        let lsn = commit_with(catalog, history, (self.session, self.number), done, outcome, batch)?;
        *written = Some(lsn);
        match statements {
            Statements::Inserts { done, .. } => done.clear(),
            _ => *statements = Statements::None,
        }
        Ok(lsn)
    }
}

/// Commits a batch together with word that a session's statements are done, which the history notes too.
/// # Errors
/// As `Store::commit`.
pub(super) fn commit_with(
    catalog: &Catalog,
    history: &mut WriteHistory,
    (session, number): (SessionName, i64),
    ranges: &Ranges,
    outcome: &Outcome,
    batch: &mut Batch<'_>,
) -> bunko_store::Result<Lsn> {
    let mut own = Batch::new();
    let batch = match catalog.store.keeping(batch) {
        Keeping::Whole => batch,
        Keeping::Place => {
            // The log would keep the whole batch for the sake of the word. Nothing can be lost between the two commits:
            // a restart takes what was written too.
            catalog.store.commit(batch)?;
            &mut own
        }
    };
    let word = tell(catalog, history, (session, number), (ranges, outcome), batch);
    let (lsn, location) = match word.told {
        In::Record(_) => catalog.store.commit_placed(batch).map(|(lsn, location)| (lsn, Some(location)))?,
        In::Memory(_) => (catalog.store.commit(batch)?, None),
    };
    word.note(history, ranges, location, lsn);
    Ok(lsn)
}

/// That statements are done, as a batch has it.
pub(super) struct Word {
    told: In,
    /// How many outdated records the batch replaces or deletes.
    given_up: usize,
}

/// What tells of it.
enum In {
    /// A record.
    Record(RecordId),
    /// What the store remembers, and by what it is told from that of other sessions of the same name.
    Memory(u64),
}

impl Word {
    /// The batch is in the log, and its last document is there, if it has any.
    pub fn note(self, history: &mut WriteHistory, ranges: &Ranges, location: Option<Location>, lsn: Lsn) {
        let told = match self.told {
            In::Record(record) => Told::Record(record, location.expect("the record of the history is a document")),
            In::Memory(own) => Told::Remembered { own },
        };
        history.add(ranges, told, lsn, self.given_up);
    }
}

/// Puts into a batch that statements are done, behind all else: as what the store remembers of the session, or as a record in the
/// place of an outdated one if there is any. The batch deletes other outdated ones.
pub(super) fn tell(
    catalog: &Catalog,
    history: &WriteHistory,
    (session, number): (SessionName, i64),
    (ranges, outcome): (&Ranges, &Outcome),
    batch: &mut Batch<'_>,
) -> Word {
    let is_remembered = history.may_be_remembered(ranges, outcome);
    let (replaced, outdated) = match history.outdated() {
        [rest @ .., last] if !is_remembered => (Some(*last), rest),
        outdated => (None, outdated),
    };
    let deleted = &outdated[outdated.len().saturating_sub(GIVEN_UP_MAX)..];
    for (record, location) in deleted {
        batch.delete_record(WRITE_HISTORIES, *record, *location);
    }
    let given_up = deleted.len() + usize::from(replaced.is_some());
    if is_remembered {
        let own = history.own().unwrap_or_else(|| catalog.history_records.next_record().0);
        record::remember(batch, (session, own), number, ranges.iter());
        return Word { told: In::Memory(own), given_up };
    }
    let document = record::encode(session, number, ranges, outcome).into_bytes();
    let record = match replaced {
        Some((record, location)) => {
            batch.replace_record(WRITE_HISTORIES, record, document, location);
            record
        }
        None => {
            let record = catalog.history_records.next_record();
            batch.insert_record(WRITE_HISTORIES, record, document);
            record
        }
    };
    Word { told: In::Record(record), given_up }
}
