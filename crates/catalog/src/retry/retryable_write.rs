//! One command's retryable write, as the unit of work of its operation.

use super::history::{Told, WriteHistory};
use super::record::{self, Ranges, WriteRecord};
use super::{Outcome, SessionName, WRITE_HISTORIES};
use crate::{Catalog, from_storage};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Batch, Keeping, Location, Lsn, RecordId};
use parking_lot::Mutex;

/// Maximum number of outdated records that one write deletes, besides the one that it replaces.
const GIVEN_UP_MAX: usize = 256;

/// A write with a session and a transaction number. The command holds the session meanwhile.
pub struct RetryableWrite {
    session: SessionName,
    number: i64,
    turn: Mutex<WriteProgress>,
}

/// The state of the write.
struct WriteProgress {
    history: WriteHistory,
    statements: Statements,
    outcome: Outcome,
    /// The log record of the last statement done.
    written: Option<Lsn>,
}

/// Statements that the next batch does.
enum Statements {
    None,
    /// An insert, each of whose documents is one statement. `done` has those of the current batch so far.
    Inserts {
        by_position: StatementNumbers,
        done: Ranges,
    },
    /// Exactly these statements.
    These(Ranges),
}

/// Statement numbers by position.
#[derive(Clone, Debug)]
pub enum StatementNumbers {
    /// Consecutive numbers from this one on.
    From(i32),
    /// One number for each position.
    Each(Vec<i32>),
}

impl StatementNumbers {
    /// The number of the statement at `position`, if there is one.
    pub fn at(&self, position: usize) -> Option<i32> {
        match self {
            Self::From(first) => Some(first.wrapping_add(position as i32)),
            Self::Each(each) => each.get(position).copied(),
        }
    }
}

impl RetryableWrite {
    /// A write under `number`, which must not be smaller than the history's.
    pub fn new(session: SessionName, mut history: WriteHistory, number: i64) -> Self {
        history.turn_to(number);
        let turn = WriteProgress { history, statements: Statements::None, outcome: Outcome::One, written: None };
        Self { session, number, turn: Mutex::new(turn) }
    }

    /// The retryable write that an operation belongs to, if any.
    pub fn of(operation: &dyn OperationSource) -> Option<&Self> {
        operation.unit()?.downcast_ref()
    }

    /// Ends the write. Returns the history, and the log record of the last statement done, `None` if none was. Nothing
    /// more is recorded afterwards.
    pub fn end(&self) -> (WriteHistory, Option<Lsn>) {
        let mut turn = self.turn.lock();
        turn.statements = Statements::None;
        (std::mem::take(&mut turn.history), turn.written)
    }

    /// The write's number.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// The outcome of a statement that was done before, and its log record, which may not be on disk yet.
    /// # Errors
    /// As `View::record`; `InternalError` if the record of the outcome is damaged.
    pub fn outcome_of(&self, catalog: &Catalog, statement: i32) -> Result<Option<(Outcome, Option<Lsn>)>> {
        let Some(done) = self.turn.lock().history.find(statement) else { return Ok(None) };
        let Told::Record(record, _) = done.told else { return Ok(Some((Outcome::One, done.lsn))) };
        let mut bytes = Vec::new();
        let found = catalog.store.latest().record(WRITE_HISTORIES, record, &mut bytes).map_err(from_storage)?;
        debug_assert!(found.is_some(), "a record stays until its session turns to another number");
        Ok(Some((WriteRecord::decode(&bytes)?.outcome, done.lsn)))
    }

    /// Begins an insert whose documents are these statements, by position.
    pub fn begin_inserts(&self, statements: StatementNumbers) {
        self.set(Statements::Inserts { by_position: statements, done: Ranges::default() });
    }

    /// Declares that the next batch does one statement.
    pub fn begin(&self, statement: i32) {
        self.set(Statements::These(Ranges::one(statement)));
    }

    /// Declares that the next batch does exactly these statements.
    pub fn begin_some(&self, statements: impl IntoIterator<Item = i32>) {
        self.set(Statements::These(statements.into_iter().collect()));
    }

    /// The statements that the current insert began with, by position.
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

    /// Sets the outcome to record if the next batch is committed. The last call counts.
    pub fn set_outcome(&self, outcome: Outcome) {
        self.turn.lock().outcome = outcome;
    }

    /// Commits a batch and records the statements that it does. The batch of an insert has the documents at the
    /// positions `inserted`.
    /// # Errors
    /// As `Store::commit`.
    pub(crate) fn commit(
        &self,
        catalog: &Catalog,
        batch: &mut Batch<'_>,
        inserted: impl Iterator<Item = usize>,
    ) -> bunko_store::Result<Lsn> {
        let mut turn = self.turn.lock();
        let WriteProgress { history, statements, outcome, written } = &mut *turn;
        if let Statements::Inserts { by_position, done } = statements {
            // Documents of an earlier batch whose commit failed do not count as done.
            done.clear();
            inserted.filter_map(|position| by_position.at(position)).for_each(|statement| done.add(statement));
        }
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

/// Commits a batch, and records in the log and in the history that a session's statements are done.
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
            // The record of statements is not added to the batch, because the log would then have to keep the whole
            // batch. Nothing can be lost between the two commits: a restart recovers the changes too.
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

/// A record in a batch, which tells that statements are done.
pub(super) struct Word {
    told: In,
    /// Number of outdated records that the batch replaces or deletes.
    given_up: usize,
}

/// Where a [`Word`] stands.
enum In {
    /// A record.
    Record(RecordId),
    /// In the store's memory, with the number that distinguishes the value from those of other sessions with the same
    /// name.
    Memory(u64),
}

impl Word {
    /// Notes in the history that the batch is in the log. `location` is that of the batch's last document, if it has
    /// any.
    pub fn note(self, history: &mut WriteHistory, ranges: &Ranges, location: Option<Location>, lsn: Lsn) {
        let told = match self.told {
            In::Record(record) => Told::Record(record, location.expect("the record of the history is a document")),
            In::Memory(own) => Told::Remembered { own },
        };
        history.add(ranges, told, lsn, self.given_up);
    }
}

/// Appends to a batch that statements are done: as the session's remembered value, or as a record, which replaces an
/// outdated one if there is any. The batch also deletes other outdated records.
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
