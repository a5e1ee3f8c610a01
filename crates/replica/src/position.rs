//! Places in logs, and where two logs part.

/// The number of an election. Zero is the term before the first election.
pub type Term = u64;

/// A place in the log, in bytes: the end of a record, or 0.
pub type Lsn = u64;

/// A log in two numbers: the term of its last record, and its end.
///
/// The log with the higher position contains every committed record of the log with the lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The term of the last record; 0 in an empty log.
    pub term: Term,
    /// The end of the last record.
    pub end: Lsn,
}

/// How a follower's position compares with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The follower's log is a prefix of the log.
    Prefix,
    /// The logs part; the highest position of the log that the follower may share.
    Diverged(Position),
}

/// The terms of a log: where each term's first record begins, in ascending order of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms(Vec<(Term, Lsn)>);

impl Terms {
    /// The table of an empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table of these terms and places; `None` unless both ascend.
    pub fn of(starts: impl IntoIterator<Item = (Term, Lsn)>) -> Option<Self> {
        let starts: Vec<_> = starts.into_iter().collect();
        starts.is_sorted_by(|before, after| before.0 < after.0 && before.1 < after.1).then_some(Self(starts))
    }

    /// Notes that `term` begins with the record that begins at `at`. A term that is already noted there stays.
    /// # Panics
    /// If term or place do not follow the last ones.
    pub fn begin(&mut self, term: Term, at: Lsn) {
        if self.0.last() == Some(&(term, at)) {
            return;
        }
        let follows = self.0.last().is_none_or(|&(last, start)| last < term && start < at);
        assert!(follows, "term {term} at {at} does not follow {:?}", self.0.last());
        self.0.push((term, at));
    }

    /// Forgets the terms that begin at `end` or later.
    pub fn truncate(&mut self, end: Lsn) {
        self.0.truncate(self.0.partition_point(|&(_, start)| start < end));
    }

    /// Forgets the terms that ended at or before `start`, where the log begins.
    pub fn forget_before(&mut self, start: Lsn) {
        let behind = self.0.partition_point(|&(_, at)| at <= start);
        self.0.drain(..behind.saturating_sub(1));
    }

    /// The last term; 0 in the table of an empty log.
    pub fn last(&self) -> Term {
        self.0.last().map_or(0, |&(term, _)| term)
    }

    /// The term of the record that ends at `end`; 0 if no record does.
    #[inline]
    pub fn term_at(&self, end: Lsn) -> Term {
        // The last term is the usual one.
        match self.0.last() {
            Some(&(term, start)) if start < end => term,
            _ => self.0[..self.0.partition_point(|&(_, start)| start < end)].last().map_or(0, |&(term, _)| term),
        }
    }

    /// The last position whose term is at most `term`, in a log that ends at `end`.
    pub fn last_at_most(&self, term: Term, end: Lsn) -> Position {
        let count = self.0.partition_point(|&(known, _)| known <= term);
        let end = self.0.get(count).map_or(end, |&(_, start)| start.min(end));
        Position { term: self.term_at(end), end }
    }

    /// Compares a follower's position with this log, which ends at `end`.
    ///
    /// Both logs contain the follower's last term: then they are equal up to the lower of the two ends of that term.
    /// Otherwise they part at the end of an earlier term or before.
    #[inline]
    pub fn compare(&self, follower: Position, end: Lsn) -> Compared {
        if follower.end <= end && follower.term == self.term_at(follower.end) {
            return Compared::Prefix;
        }
        Compared::Diverged(self.last_at_most(follower.term, end))
    }

    /// The terms and their places, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Term, Lsn)> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(list: &[(Term, Lsn)]) -> Terms {
        Terms(list.to_vec())
    }

    #[test]
    fn a_records_term_is_that_of_the_last_beginning_before_its_end() {
        let table = terms(&[(1, 0), (3, 10), (4, 20)]);
        let seen: Vec<_> = [0, 1, 10, 11, 20, 21, 99].map(|end| table.term_at(end)).into();
        assert_eq!(seen, [0, 1, 1, 3, 3, 4, 4]);
    }

    /// All pairs of small logs: comparing again and again, as follower and primary do, ends at the common prefix.
    #[test]
    fn comparing_ends_at_the_common_prefix() {
        // A log is a list of records' terms; a term's records are the same in all logs, so equal terms at equal places
        // mean equal prefixes. Each log is a prefix of an earlier primary's, continued by a later term.
        let mut logs: Vec<Vec<Term>> = vec![vec![]];
        let mut full: Vec<Vec<Term>> = vec![vec![]];
        for term in 1..=4 {
            let base: Vec<Term> = full[(term as usize * 7) % full.len()].clone();
            for cut in 0..=base.len() {
                let mut log = base[..cut].to_vec();
                log.extend([term; 3]);
                for end in 0..=log.len() {
                    logs.push(log[..end].to_vec());
                }
                if cut == base.len().saturating_sub(1) {
                    full.push(log);
                }
            }
        }
        let table = |log: &[Term]| {
            let mut terms = Terms::new();
            for (at, &term) in log.iter().enumerate() {
                if at == 0 || log[at - 1] != term {
                    terms.begin(term, at as Lsn);
                }
            }
            terms
        };
        for primary in &full {
            for log in &logs {
                // Two logs of one history agree wherever a term begins at the same place in both.
                let shared = primary.iter().zip(log).take_while(|(a, b)| a == b).count();
                let same_history = log.iter().all(|term| {
                    let start = |log: &[Term]| log.iter().position(|known| known == term);
                    start(primary).is_none() || start(primary) == start(log)
                });
                if !same_history {
                    continue;
                }
                let (mine, theirs) = (table(log), table(primary));
                let mut position = mine.last_at_most(Term::MAX, log.len() as Lsn);
                let mut rounds = 0;
                while let Compared::Diverged(hint) = theirs.compare(position, primary.len() as Lsn) {
                    let next = mine.last_at_most(hint.term, position.end);
                    position = if next.term == hint.term && next.end > hint.end { hint } else { next };
                    rounds += 1;
                    assert!(rounds < 10, "{primary:?} {log:?}");
                }
                assert_eq!(position.end, shared as Lsn, "{primary:?} {log:?}");
            }
        }
    }

    #[test]
    fn truncating_forgets_later_terms() {
        let mut table = terms(&[(1, 0), (3, 10)]);
        table.truncate(10);
        assert_eq!(table, terms(&[(1, 0)]));
        table.begin(4, 10);
        assert_eq!((table.term_at(12), table.last()), (4, 4));
    }

    #[test]
    fn terms_before_the_logs_beginning_are_forgotten_except_the_one_that_it_begins_in() {
        let all = [(2, 100), (5, 200), (6, 300)];
        for (start, left) in [(99, 3), (199, 3), (200, 2), (299, 2), (300, 1), (9000, 1)] {
            let mut table = Terms::of(all).expect("they ascend");
            table.forget_before(start);
            assert_eq!(table.iter().count(), left, "before {start}");
            assert_eq!(table.term_at(start + 1), terms(&all).term_at(start + 1));
        }
        for wrong in [[(2, 100), (2, 200)], [(3, 100), (2, 200)], [(2, 100), (3, 100)]] {
            assert_eq!(Terms::of(wrong), None);
        }
    }
}
