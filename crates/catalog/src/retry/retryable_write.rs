//! One command's retryable write: the unit of work that its operation belongs to.

use super::history::WriteHistory;
use super::record::{self, Ranges, WriteRecord};
use super::{Outcome, SessionName, WRITE_HISTORIES};
use crate::{Catalog, from_storage};
use bunko_bson::DocumentBuf;
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Batch, Lsn, RecordId};
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
        let mut bytes = Vec::new();
        let found = catalog.store.latest().record(WRITE_HISTORIES, done.record, &mut bytes).map_err(from_storage)?;
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

    /// Commits a batch together with the record of what it does.
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

/// Commits a batch together with the record that a session's statements are done, which the history notes too.
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
    let document = record::encode(session, number, ranges, outcome);
    let (lsn, placed) = if catalog.store.is_volatile(batch) {
        // What outlives a restart may not stand among what does not. Nothing can be lost between the two: a restart
        // takes what was written too.
        let written = catalog.store.commit(batch)?;
        let mut own = Batch::new();
        let (record, given_up) = put(catalog, history, document, &mut own);
        let (_, location) = catalog.store.commit_placed(&own)?;
        (written, (record, given_up, location))
    } else {
        let (record, given_up) = put(catalog, history, document, batch);
        let (lsn, location) = catalog.store.commit_placed(batch)?;
        (lsn, (record, given_up, location))
    };
    let (record, given_up, location) = placed;
    history.add(ranges, record, location, lsn, given_up);
    Ok(lsn)
}

/// Puts a record into a batch, as its last document, in the place of an outdated one if there is any; which it is, and how
/// many outdated ones the batch replaces or deletes.
pub(super) fn put(
    catalog: &Catalog,
    history: &WriteHistory,
    document: DocumentBuf,
    batch: &mut Batch<'_>,
) -> (RecordId, usize) {
    let document = document.into_bytes();
    let Some(((record, location), rest)) = history.outdated().split_last() else {
        let record = catalog.history_records.next_record();
        batch.insert_record(WRITE_HISTORIES, record, document);
        return (record, 0);
    };
    let also = &rest[rest.len().saturating_sub(GIVEN_UP_MAX)..];
    for (record, location) in also {
        batch.delete_record(WRITE_HISTORIES, *record, *location);
    }
    batch.replace_record(WRITE_HISTORIES, *record, document, *location);
    (*record, 1 + also.len())
}
