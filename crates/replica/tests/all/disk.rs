//! The model of a member's files: a log whose unsynced end a crash may take, a vote, a configuration.

use crate::random::Random;
use bunko_replica::{Configuration, Lsn, Term, Terms, Vote};

/// One record of the model log; it takes one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    pub term: Term,
    /// Which write it is; 0 begins a term.
    pub value: u64,
    /// A checksum of this record and all before it.
    pub prefix: u64,
}

impl Record {
    pub fn after(before: Option<&Record>, term: Term, value: u64) -> Self {
        let mut mix = Random(before.map_or(1, |record| record.prefix));
        let mut mix = Random(mix.below(u64::MAX) ^ term);
        Self { term, value, prefix: Random(mix.below(u64::MAX) ^ value).below(u64::MAX) }
    }
}

#[derive(Clone, Default)]
pub struct Disk {
    /// The log as the process sees it.
    pub records: Vec<Record>,
    /// How many records survive a crash.
    pub synced: usize,
    /// The contents of the files after a crash.
    image: Vec<Record>,
    pub vote: Vote,
    pub configuration: Configuration,
}

impl Disk {
    pub fn new(configuration: Configuration) -> Self {
        Self { configuration, ..Self::default() }
    }

    pub fn written(&self) -> Lsn {
        self.records.len() as Lsn
    }

    pub fn append(&mut self, term: Term, value: u64) {
        self.records.push(Record::after(self.records.last(), term, value));
    }

    /// Syncs the first `count` records.
    pub fn sync(&mut self, count: usize) {
        let count = count.min(self.records.len());
        for (at, record) in self.records[..count].iter().enumerate() {
            match self.image.get_mut(at) {
                Some(old) => *old = *record,
                None => self.image.push(*record),
            }
        }
        self.synced = self.synced.max(count);
    }

    /// Cuts the log. Without a durable intent, the files keep the rest until it is overwritten.
    pub fn truncate(&mut self, end: usize, with_intent: bool) {
        self.records.truncate(end);
        if with_intent {
            self.sync(end);
            self.image.truncate(end);
        }
        self.synced = end;
    }

    /// Loses a part of the unsynced end.
    pub fn crash(&mut self, random: &mut Random) {
        let kept = self.synced as u64 + random.below((self.records.len() - self.synced) as u64 + 1);
        self.sync(kept as usize);
        self.records.clone_from(&self.image);
        self.synced = self.records.len();
    }

    /// Place and contents of the last record.
    ///
    /// # Panics
    /// If there is none.
    pub fn last(&self) -> (Lsn, Record) {
        let at = self.records.len() - 1;
        (at as Lsn, self.records[at])
    }

    /// Whether the record at that place is the first of its term.
    pub fn begins_term(&self, at: usize) -> bool {
        at == 0 || self.records[at - 1].term != self.records[at].term
    }

    pub fn terms(&self) -> Terms {
        let mut terms = Terms::new();
        for (at, record) in self.records.iter().enumerate() {
            if self.begins_term(at) {
                terms.begin(record.term, at as Lsn);
            }
        }
        terms
    }

    /// Whether every record follows the one before it, as some primary wrote them.
    pub fn is_sound(&self) -> bool {
        let mut before = None;
        self.records.iter().all(|record| {
            let sound = *record == Record::after(before, record.term, record.value);
            before = Some(record);
            sound
        })
    }
}
