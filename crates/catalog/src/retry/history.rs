//! The statements that a session has done under its present transaction number.

use super::Outcome;
use super::record::{RANGES_REMEMBERED_MAX, Range, Ranges};
use bunko_store::{Location, Lsn, RecordId};

/// The statement number of a transaction's commit. Clients number their statements from 0.
pub(super) const COMMIT: i32 = i32::MIN;

/// Statements done under a session's last number, and where their outcomes are stored. Outcomes stay on disk: clients
/// rarely ask for them, and a single one can have 16 MB.
#[derive(Debug, Default)]
pub struct WriteHistory {
    number: Option<i64>,
    /// Ordered by statement; the ranges do not overlap.
    done: Vec<Done>,
    /// Records of earlier numbers, which later ones replace.
    outdated: Vec<(RecordId, Location)>,
    /// The number that distinguishes the session's remembered value from the values of other sessions with the same
    /// name. `None` if the store remembers no value. The value may belong to an earlier transaction number.
    own: Option<u64>,
}

/// Statements that one record or remembered value reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub range: Range,
    pub told: Told,
    /// The log record with these statements; `None` if it was written before the server last started.
    pub lsn: Option<Lsn>,
}

/// Where it is recorded that statements were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// In the value that the store remembers. Each statement had the usual outcome ([`Outcome::One`]).
    Remembered {
        /// The number that distinguishes the value from those of other sessions with the same name.
        own: u64,
    },
    /// In a record.
    Record(RecordId, Location),
}

impl WriteHistory {
    /// The session's last number, if it had one.
    pub fn number(&self) -> Option<i64> {
        self.number
    }

    /// Whether the session has recorded nothing.
    pub fn is_empty(&self) -> bool {
        self.number.is_none()
    }

    /// The commit recorded under the session's last number, if that is a committed transaction. The inner value is the
    /// log record of the commit if it may not be on disk yet.
    pub fn commit(&self) -> Option<Option<Lsn>> {
        self.find(COMMIT).map(|done| done.lsn)
    }

    /// Turns to `number`, which must not be smaller than the last one.
    pub fn turn_to(&mut self, number: i64) {
        if self.number == Some(number) {
            return;
        }
        debug_assert!(self.number.is_none_or(|last| last < number), "older numbers are refused before");
        self.number = Some(number);
        self.give_up_done();
    }

    fn give_up_done(&mut self) {
        let first = self.outdated.len();
        self.outdated.extend(self.done.drain(..).filter_map(|done| match done.told {
            Told::Remembered { .. } => None,
            Told::Record(record, location) => Some((record, location)),
        }));
        // One record can report several ranges, but must be deleted once.
        if self.outdated.len() > first + 1 {
            self.outdated.sort_unstable_by_key(|(record, _)| *record);
            self.outdated.dedup_by_key(|(record, _)| *record);
        }
    }

    /// Whether the store should remember these statements instead of writing a record: they are the first of their
    /// number, few, and have the usual outcome.
    pub(super) fn may_be_remembered(&self, ranges: &Ranges, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::One) && self.done.is_empty() && ranges.len() <= RANGES_REMEMBERED_MAX
    }

    /// The entry that covers a statement; `None` if the statement was not done.
    pub(super) fn find(&self, statement: i32) -> Option<Done> {
        let behind = self.done.partition_point(|done| done.range.0 <= statement);
        self.done[..behind].last().filter(|done| statement <= done.range.1).copied()
    }

    pub(super) fn outdated(&self) -> &[(RecordId, Location)] {
        &self.outdated
    }

    /// Adds statements that are now in the log, and drops the last `given_up` outdated records, which the same batch
    /// deleted or replaced.
    pub(super) fn add(&mut self, ranges: &Ranges, told: Told, lsn: Lsn, given_up: usize) {
        self.outdated.truncate(self.outdated.len() - given_up);
        self.note_own(told);
        self.add_done(ranges.iter(), told, Some(lsn));
    }

    fn note_own(&mut self, told: Told) {
        if let Told::Remembered { own } = told {
            self.own = Some(own);
        }
    }

    /// The number that distinguishes the session's remembered value from others, if the store remembers one.
    pub(super) fn own(&self) -> Option<u64> {
        self.own
    }

    fn add_done(&mut self, ranges: impl Iterator<Item = Range>, told: Told, lsn: Option<Lsn>) {
        for range in ranges {
            let done = Done { range, told, lsn };
            // Statements usually arrive in order.
            let place = match self.done.last() {
                Some(last) if last.range.0 > range.0 => self.done.partition_point(|done| done.range.0 < range.0),
                _ => self.done.len(),
            };
            self.done.insert(place, done);
        }
    }

    /// Adds statements found at the start of the server; their numbers come in any order.
    pub(super) fn add_loaded(&mut self, number: i64, told: Told, ranges: &[Range]) {
        self.note_own(told);
        if self.number.is_some_and(|last| number < last) {
            if let Told::Record(record, location) = told {
                self.outdated.push((record, location));
            }
            return;
        }
        if self.number != Some(number) {
            self.give_up_done();
            self.number = Some(number);
        }
        self.add_done(ranges.iter().copied(), told, None);
    }

    /// The positions of all records of the history, for deleting them.
    pub(super) fn into_records(mut self) -> Vec<(RecordId, Location)> {
        self.give_up_done();
        self.outdated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64) -> Told {
        Told::Record(RecordId(number), Location { position: number * 10, length: 1, checksum: 0 })
    }

    #[test]
    fn the_last_number_counts_in_whatever_order_it_is_found() {
        let mut history = WriteHistory::default();
        history.add_loaded(2, record(1), &[(0, 3)]);
        history.add_loaded(1, record(2), &[(5, 5)]);
        history.add_loaded(1, Told::Remembered { own: 5 }, &[(7, 7)]);
        history.add_loaded(2, record(3), &[(9, 9), (4, 4)]);
        assert_eq!(history.number(), Some(2));
        for missing in [5, 7, -1, 10] {
            assert!(history.find(missing).is_none());
        }
        assert_eq!([3, 4, 9].map(|statement| history.find(statement).expect("done").told), [1, 3, 3].map(record));
        history.turn_to(3);
        assert!(history.find(0).is_none());
        assert_eq!(history.own(), Some(5));
        let mut records: Vec<u64> = history.into_records().into_iter().map(|(record, _)| record.0).collect();
        records.sort_unstable();
        assert_eq!(records, [1, 2, 3]);
    }

    #[test]
    fn the_first_statements_of_a_number_are_remembered() {
        let mut history = WriteHistory::default();
        let (few, many) = (Ranges::one(0), (0..10).map(|number| number * 2).collect::<Ranges>());
        history.turn_to(1);
        assert!(history.may_be_remembered(&few, &Outcome::One));
        assert!(!history.may_be_remembered(&many, &Outcome::One));
        assert!(!history.may_be_remembered(&few, &Outcome::Returned { value: None, upserted: None, did: None }));
        history.add(&few, Told::Remembered { own: 5 }, Lsn(64), 0);
        assert!(!history.may_be_remembered(&Ranges::one(1), &Outcome::One), "the value would hide the one before");
        history.turn_to(2);
        assert!(history.may_be_remembered(&few, &Outcome::One) && history.outdated().is_empty());
    }
}
