//! Promises that must hold in every run.

use crate::disk::Record;
use bunko_replica::{Lsn, MemberId, Term};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Default)]
pub struct Checks {
    /// The first violation.
    pub violation: Option<String>,
    /// All committed records, as the first member that committed each had it.
    pub committed: Vec<Record>,
    /// Each term's primary, and its log when it was elected.
    primaries: BTreeMap<Term, (MemberId, Vec<Record>)>,
    /// The checksum up to a record, by place and term.
    prefixes: HashMap<(Lsn, Term), u64>,
    /// The end of the last write that was acknowledged for `w: majority`, or that a linearizable read saw.
    pub acknowledged: Lsn,
    pub acknowledgements: u64,
    pub reads: u64,
}

impl Checks {
    pub fn violate(&mut self, what: impl FnOnce() -> String) {
        self.violation.get_or_insert_with(what);
    }

    /// Election safety, and leader completeness for what was committed before.
    pub fn elected(&mut self, member: MemberId, term: Term, log: &[Record]) {
        if let Some((other, _)) = self.primaries.get(&term) {
            let other = *other;
            self.violate(|| format!("election safety: {member:?} and {other:?} are primary in term {term}"));
        }
        if !log.starts_with(&self.committed) {
            let committed = self.committed.len();
            self.violate(|| {
                format!("leader completeness: {member:?}, elected in term {term}, lacks some of {committed}")
            });
        }
        self.primaries.insert(term, (member, log.to_vec()));
    }

    /// Log matching: records of one term at one place have the same past.
    pub fn appended(&mut self, member: MemberId, at: Lsn, record: &Record) {
        let prefix = *self.prefixes.entry((at, record.term)).or_insert(record.prefix);
        if prefix != record.prefix {
            self.violate(|| format!("log matching: {member:?} has another record at {at} of term {}", record.term));
        }
    }

    /// Committed records stay, and are the same everywhere.
    pub fn committed(&mut self, member: MemberId, term: Term, end: Lsn, log: &[Record]) {
        let end = end as usize;
        if end > log.len() {
            return self.violate(|| format!("{member:?} commits {end}, and has {}", log.len()));
        }
        let known = self.committed.len().min(end);
        if self.committed[..known] != log[..known] {
            return self.violate(|| format!("committed records differ at {member:?} in term {term}, below {end}"));
        }
        if end > known {
            self.committed.extend_from_slice(&log[known..end]);
            let later = self.primaries.range(term + 1..).find(|(_, (_, elected))| !elected.starts_with(&log[..end]));
            if let Some((&later, _)) = later {
                self.violate(|| {
                    format!("leader completeness: term {later} lacks what term {term} commits, below {end}")
                });
            }
        }
    }

    pub fn acknowledged(&mut self, end: Lsn) {
        self.acknowledged = self.acknowledged.max(end);
        self.acknowledgements += 1;
    }

    /// A majority read must see nothing that can be rolled back.
    pub fn majority_read(&mut self, member: MemberId, at: Lsn, log: &[Record]) {
        let at = at as usize;
        if at > self.committed.len() || self.committed[..at] != log[..at] {
            self.violate(|| format!("a majority read at {member:?} sees {at}, which is not committed"));
        }
    }

    /// A linearizable read must see all that was acknowledged before it began.
    pub fn linearizable_read(&mut self, member: MemberId, at: Lsn, at_least: Lsn) {
        if at < at_least {
            self.violate(|| format!("a linearizable read at {member:?} sees {at}, and {at_least} was acknowledged"));
        }
        if at as usize > self.committed.len() {
            self.violate(|| format!("a linearizable read at {member:?} sees {at}, which is not committed"));
        }
        self.acknowledged = self.acknowledged.max(at);
        self.reads += 1;
    }
}
