//! Progress of a run, and where its time goes.

pub mod render;
mod reporter;
mod snapshot;

pub use reporter::{Reporter, Style};
pub use snapshot::{NamespaceSnapshot, Snapshot};

use bunko_host::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Work that a thread does or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// Reading the input's files or pipe.
    ReadSource,
    /// Decompressing, or waiting for the threads that decompress.
    Decompress,
    /// Turning text into documents, or documents into text.
    Parse,
    /// Compressing, or waiting for the threads that compress.
    Compress,
    /// Handing bytes to the network and taking them from it.
    Network,
    /// Waiting for the server's replies.
    Server,
    /// Building indexes on the server.
    BuildIndexes,
    /// Writing the output's files or pipe.
    WriteTarget,
}

impl Activity {
    /// All activities, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::ReadSource,
        Self::Decompress,
        Self::Parse,
        Self::Compress,
        Self::Network,
        Self::Server,
        Self::BuildIndexes,
        Self::WriteTarget,
    ];

    /// Name in JSON lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadSource => "readSource",
            Self::Decompress => "decompress",
            Self::Parse => "parse",
            Self::Compress => "compress",
            Self::Network => "network",
            Self::Server => "server",
            Self::BuildIndexes => "buildIndexes",
            Self::WriteTarget => "writeTarget",
        }
    }

    /// Name in text for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::ReadSource => "reading the source",
            Self::Decompress => "decompression",
            Self::Parse => "parsing",
            Self::Compress => "compression",
            Self::Network => "network",
            Self::Server => "server",
            Self::BuildIndexes => "index builds",
            Self::WriteTarget => "writing the target",
        }
    }
}

/// Counts of one namespace, shared by all threads that work on it.
#[derive(Debug, Default)]
pub struct Counts {
    /// Documents done.
    pub documents: AtomicU64,
    /// Bytes of these documents.
    pub bytes: AtomicU64,
    /// Documents that were refused.
    pub failures: AtomicU64,
    /// Refused documents whose key another document has.
    pub key_failures: AtomicU64,
    /// Documents to be done; 0 where that is not known.
    pub documents_expected: AtomicU64,
    /// Bytes to be done; 0 where that is not known.
    pub bytes_expected: AtomicU64,
    documents_before: AtomicU64,
    bytes_before: AtomicU64,
    finished: AtomicBool,
    abandoned: AtomicBool,
}

impl Counts {
    /// Counts documents as done.
    pub fn add(&self, documents: u64, bytes: u64) {
        self.documents.fetch_add(documents, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts documents that an earlier run has done. They do not count for this run's pace.
    pub fn add_earlier(&self, documents: u64, bytes: u64) {
        self.documents_before.fetch_add(documents, Ordering::Relaxed);
        self.bytes_before.fetch_add(bytes, Ordering::Relaxed);
        self.add(documents, bytes);
    }

    /// Subtracts documents that will be done again.
    pub fn take_back(&self, documents: u64, bytes: u64) {
        self.documents.fetch_sub(documents, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Marks the namespace as finished, even if its counts differ from the expected ones.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    /// Marks the namespace as given up.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.finish();
    }
}

/// Progress of a whole run.
#[derive(Debug)]
pub struct Progress {
    clock: Clock,
    started: Instant,
    namespaces: Mutex<Vec<(String, Arc<Counts>)>>,
    spent_ns: [AtomicU64; Activity::ALL.len()],
    /// Sentences that the user has not been shown yet.
    notes: Mutex<Vec<String>>,
    /// Consumed bytes of the source, as stored (compressed).
    pub source_bytes: AtomicU64,
    /// Bytes of the whole source; 0 if that is not known (a pipe).
    pub source_bytes_expected: AtomicU64,
}

impl Progress {
    /// The progress of a run that begins now, by this clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            started: clock.now(),
            clock,
            namespaces: Mutex::default(),
            spent_ns: Default::default(),
            notes: Mutex::default(),
            source_bytes: AtomicU64::new(0),
            source_bytes_expected: AtomicU64::new(0),
        }
    }

    /// The clock that the run measures time by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The counts of a namespace, made at the first call.
    pub fn namespace(&self, name: &str) -> Arc<Counts> {
        let mut namespaces = self.namespaces.lock();
        if let Some((_, counts)) = namespaces.iter().find(|(known, _)| known == name) {
            return Arc::clone(counts);
        }
        let counts = Arc::new(Counts::default());
        namespaces.push((name.to_owned(), Arc::clone(&counts)));
        counts
    }

    /// Runs `work` and adds its time to `activity`.
    pub fn time<T>(&self, activity: Activity, work: impl FnOnce() -> T) -> T {
        let begun = self.clock.now();
        let result = work();
        self.spend(activity, self.clock.since(begun));
        result
    }

    /// Adds time to an activity.
    pub fn spend(&self, activity: Activity, time: Duration) {
        self.spent_ns[activity as usize].fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Adds a sentence that is shown to the user and is not an error.
    pub fn note(&self, sentence: String) {
        self.notes.lock().push(sentence);
    }

    /// Takes the notes added since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock())
    }

    /// Present values of all counts.
    pub fn snapshot(&self) -> Snapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let namespaces = self.namespaces.lock();
        let namespaces = namespaces.iter().map(|(name, counts)| NamespaceSnapshot {
            name: name.clone(),
            documents: load(&counts.documents),
            bytes: load(&counts.bytes),
            failures: load(&counts.failures),
            documents_expected: load(&counts.documents_expected),
            bytes_expected: load(&counts.bytes_expected),
            documents_before: load(&counts.documents_before),
            bytes_before: load(&counts.bytes_before),
            is_finished: counts.finished.load(Ordering::Relaxed),
            is_abandoned: counts.abandoned.load(Ordering::Relaxed),
        });
        Snapshot {
            elapsed: self.clock.since(self.started),
            namespaces: namespaces.collect(),
            spent: self.spent_ns.each_ref().map(|spent_ns| Duration::from_nanos(load(spent_ns))),
            source_bytes: load(&self.source_bytes),
            source_bytes_expected: load(&self.source_bytes_expected),
        }
    }
}
