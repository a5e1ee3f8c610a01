//! What a session has done under its present number.

use super::record::{Range, Ranges};
use bunko_store::{Location, Lsn, RecordId};

/// The number of a transaction's commit among statements; clients number theirs from 0 on.
pub(super) const COMMIT: i32 = i32::MIN;

/// Which statements of a session's last number were done, and where their outcomes stand. The outcomes stay on disk:
/// they are rarely asked for, and one may have 16 MB.
#[derive(Debug, Default)]
pub struct WriteHistory {
    number: Option<i64>,
    /// By statement; no two have one in common.
    done: Vec<Done>,
    /// Records of earlier numbers, which later ones replace.
    outdated: Vec<(RecordId, Location)>,
}

/// Statements that one record tells of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub range: Range,
    pub record: RecordId,
    pub location: Location,
    /// The record of the log that has them; `None` where the server has been started since.
    pub lsn: Option<Lsn>,
}

impl WriteHistory {
    /// The session's last number, if it had one.
    pub fn number(&self) -> Option<i64> {
        self.number
    }

    /// Whether the session has left nothing.
    pub fn is_empty(&self) -> bool {
        self.number.is_none()
    }

    /// Whether its last number is that of a transaction that was committed; and the record of the log that says so, where
    /// the log may not be on disk so far.
    pub fn commit(&self) -> Option<Option<Lsn>> {
        self.find(COMMIT).map(|done| done.lsn)
    }

    /// Turns to a number, which is not smaller than the last one.
    pub fn turn_to(&mut self, number: i64) {
        if self.number == Some(number) {
            return;
        }
        debug_assert!(self.number.is_none_or(|last| last < number), "older numbers are refused before");
        self.number = Some(number);
        self.give_up_done();
    }

    fn give_up_done(&mut self) {
        if let [done] = self.done[..] {
            self.done.clear();
            self.outdated.push((done.record, done.location));
            return;
        }
        // A record may tell of several ranges.
        self.done.sort_unstable_by_key(|done| done.record);
        self.done.dedup_by_key(|done| done.record);
        self.outdated.extend(self.done.drain(..).map(|done| (done.record, done.location)));
    }

    /// The record that has a statement's outcome.
    pub(super) fn find(&self, statement: i32) -> Option<Done> {
        let behind = self.done.partition_point(|done| done.range.0 <= statement);
        self.done[..behind].last().filter(|done| statement <= done.range.1).copied()
    }

    pub(super) fn outdated(&self) -> &[(RecordId, Location)] {
        &self.outdated
    }

    /// Notes what a record that is in the log now tells of, and that the last `given_up` outdated ones are gone.
    pub(super) fn add(&mut self, ranges: &Ranges, record: RecordId, location: Location, lsn: Lsn, given_up: usize) {
        self.outdated.truncate(self.outdated.len() - given_up);
        self.add_done(ranges.iter(), record, location, Some(lsn));
    }

    fn add_done(
        &mut self,
        ranges: impl Iterator<Item = Range>,
        record: RecordId,
        location: Location,
        lsn: Option<Lsn>,
    ) {
        for range in ranges {
            let done = Done { range, record, location, lsn };
            // Statements come in their order as a rule.
            let place = match self.done.last() {
                Some(last) if last.range.0 > range.0 => self.done.partition_point(|done| done.range.0 < range.0),
                _ => self.done.len(),
            };
            self.done.insert(place, done);
        }
    }

    /// Notes a record that was found at the start; they come in any order of numbers.
    pub(super) fn add_loaded(&mut self, number: i64, record: RecordId, location: Location, ranges: &[Range]) {
        if self.number.is_some_and(|last| number < last) {
            self.outdated.push((record, location));
            return;
        }
        if self.number != Some(number) {
            self.give_up_done();
            self.number = Some(number);
        }
        self.add_done(ranges.iter().copied(), record, location, None);
    }

    /// All records that it stands on.
    pub(super) fn into_records(mut self) -> Vec<(RecordId, Location)> {
        self.give_up_done();
        self.outdated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(position: u64) -> Location {
        Location { position, length: 1, checksum: 0 }
    }

    #[test]
    fn the_last_number_counts_in_whatever_order_records_are_found() {
        let mut history = WriteHistory::default();
        history.add_loaded(2, RecordId(1), at(10), &[(0, 3)]);
        history.add_loaded(1, RecordId(2), at(20), &[(5, 5)]);
        history.add_loaded(2, RecordId(3), at(30), &[(9, 9), (4, 4)]);
        assert_eq!(history.number(), Some(2));
        assert!(history.find(5).is_none() && history.find(-1).is_none() && history.find(10).is_none());
        assert_eq!(
            (history.find(3).expect("done").record, history.find(4).expect("done").record),
            (RecordId(1), RecordId(3))
        );
        assert_eq!(history.find(9).expect("done").record, RecordId(3));
        history.turn_to(3);
        assert!(history.find(0).is_none());
        let records: Vec<u64> = history.into_records().into_iter().map(|(record, _)| record.0).collect();
        assert_eq!(records, [2, 1, 3]);
    }
}
