//! Counters of an operation's work, for the profiler and the server's own counters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters of one operation. Only the thread that works for the operation counts, so that plain stores are enough.
#[derive(Debug, Default)]
pub struct WorkCounters {
    keys_inserted: AtomicU64,
    keys_deleted: AtomicU64,
    keys_examined: AtomicU64,
    documents_examined: AtomicU64,
    has_used_disk: AtomicBool,
}

/// Work of an operation since the counters were taken last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// Keys that the operation put into indexes.
    pub keys_inserted: u64,
    /// Keys that the operation took out of indexes.
    pub keys_deleted: u64,
    /// Index keys that the operation's pipelines looked at.
    pub keys_examined: u64,
    /// Documents that the operation's pipelines looked at.
    pub documents_examined: u64,
    /// Whether a stage of the operation put anything on disk.
    pub has_used_disk: bool,
}

/// Numbers of index keys and documents that a command examined.
#[derive(Clone, Copy, Debug, Default)]
pub struct Examined {
    /// Number of index keys.
    pub keys: u64,
    /// Number of documents.
    pub documents: u64,
}

impl WorkCounters {
    /// Notes that the operation changed this many keys of indexes.
    pub fn note_keys(&self, inserted: usize, deleted: usize) {
        add(&self.keys_inserted, inserted as u64);
        add(&self.keys_deleted, deleted as u64);
    }

    /// Notes that a pipeline of the operation looked at this many index keys and documents.
    pub fn note_examined(&self, keys: u64, documents: u64) {
        add(&self.keys_examined, keys);
        add(&self.documents_examined, documents);
    }

    /// Notes that a stage of the operation put something on disk.
    pub fn note_disk_use(&self) {
        self.has_used_disk.store(true, Ordering::Relaxed);
    }

    /// Takes the work that was noted since the last call.
    pub fn take(&self) -> WorkDone {
        let take = |counter: &AtomicU64| {
            let count = counter.load(Ordering::Relaxed);
            counter.store(0, Ordering::Relaxed);
            count
        };
        let has_used_disk = self.has_used_disk.load(Ordering::Relaxed);
        self.has_used_disk.store(false, Ordering::Relaxed);
        WorkDone {
            keys_inserted: take(&self.keys_inserted),
            keys_deleted: take(&self.keys_deleted),
            keys_examined: take(&self.keys_examined),
            documents_examined: take(&self.documents_examined),
            has_used_disk,
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed) + count, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_were_taken_are_not_reported_again() {
        let counters = WorkCounters::default();
        counters.note_keys(2, 1);
        counters.note_keys(1, 0);
        counters.note_examined(3, 4);
        counters.note_disk_use();
        let done = WorkDone {
            keys_inserted: 3,
            keys_deleted: 1,
            keys_examined: 3,
            documents_examined: 4,
            has_used_disk: true,
        };
        assert_eq!((counters.take(), counters.take()), (done, WorkDone::default()));
    }
}
