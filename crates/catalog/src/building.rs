//! State that the builder of an index shares with writers while the index is built.
//!
//! The builder derives keys from a snapshot without locks, and puts them under the locks of their records. A record
//! that changed after the index was shown to writers has had all its keys put with that change, so the builder skips
//! it. A key of a unique index leads to one record. Further records with the key are kept here until one of the records
//! gives it up, or the build ends and refuses them.

use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationSource;
use bunko_store::{KeyspaceId, RecordId};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Maximum number of records that may wait for unique keys of other records. A build that meets more is given up.
const OTHER_HOLDERS_MAX: usize = 1 << 20;
const RECORDS_PER_WORD: u64 = u64::BITS as u64;
const WORDS_PER_PAGE: usize = 512;
const RECORDS_PER_PAGE: u64 = RECORDS_PER_WORD * WORDS_PER_PAGE as u64;

/// One build, of one or more indexes of a collection.
#[derive(Debug, Default)]
pub(crate) struct IndexBuild {
    changed: Mutex<ChangedRecords>,
    others: Mutex<OtherHolders>,
    course: Mutex<Course>,
    ended: Condvar,
    done: AtomicU64,
    total: AtomicU64,
    /// Whether the build waits for other builds to end.
    is_waiting: AtomicBool,
}

/// An effect of a committed batch on a build.
pub(crate) enum BuildNote {
    /// All keys of the record were put.
    Changed(RecordId),
    /// The record has a unique key that leads to another record.
    HolderAdded(KeyspaceId, Vec<u8>, RecordId),
    /// The record no longer has the key, or the key leads to the record now.
    HolderRemoved(KeyspaceId, Vec<u8>, RecordId),
}

/// Marks a build as waiting for its turn while it exists.
pub(crate) struct WaitingBuild<'b>(&'b IndexBuild);

impl Drop for WaitingBuild<'_> {
    fn drop(&mut self) {
        self.0.is_waiting.store(false, Ordering::Relaxed);
    }
}

/// The state of a build: running, aborted or ended. An aborted build also ends.
#[derive(Debug, Default)]
struct Course {
    aborted: Option<Failure>,
    has_ended: bool,
}

/// Records that the builder has not reached and that changed after the index was shown.
#[derive(Debug, Default)]
struct ChangedRecords {
    /// The builder is done with records below this one.
    next: u64,
    /// Records from this one on were inserted together with their keys.
    end: u64,
    /// One bit per record: a hundred million records take 12 MB.
    pages: BTreeMap<u64, Box<[u64; WORDS_PER_PAGE]>>,
}

/// Records that have a unique key which leads, or led when they were added, to another record.
#[derive(Debug, Default)]
struct OtherHolders {
    records: BTreeMap<(KeyspaceId, Vec<u8>), BTreeSet<RecordId>>,
    count: usize,
}

impl ChangedRecords {
    fn note(&mut self, record: RecordId) {
        if (self.next..self.end).contains(&record.0) {
            let page = self.pages.entry(record.0 / RECORDS_PER_PAGE).or_insert_with(|| Box::new([0; WORDS_PER_PAGE]));
            let place = record.0 % RECORDS_PER_PAGE;
            page[(place / RECORDS_PER_WORD) as usize] |= 1 << (place % RECORDS_PER_WORD);
        }
    }

    fn contains(&self, record: RecordId) -> bool {
        let place = record.0 % RECORDS_PER_PAGE;
        let page = self.pages.get(&(record.0 / RECORDS_PER_PAGE));
        page.is_some_and(|page| page[(place / RECORDS_PER_WORD) as usize] & 1 << (place % RECORDS_PER_WORD) != 0)
    }

    fn advance(&mut self, next: RecordId) {
        self.next = next.0;
        self.pages = self.pages.split_off(&(next.0 / RECORDS_PER_PAGE));
    }
}

impl OtherHolders {
    fn add(&mut self, keyspace: KeyspaceId, key: Vec<u8>, record: RecordId) {
        self.count += usize::from(self.records.entry((keyspace, key)).or_default().insert(record));
    }

    fn remove(&mut self, keyspace: KeyspaceId, key: Vec<u8>, record: RecordId) {
        let key = (keyspace, key);
        if let Some(records) = self.records.get_mut(&key) {
            self.count -= usize::from(records.remove(&record));
            if records.is_empty() {
                self.records.remove(&key);
            }
        }
    }
}

impl IndexBuild {
    /// Begins the build: writers see the index from now on, and insert records from `end` on. The caller keeps writers
    /// out.
    pub fn begin(&self, end: RecordId, total: u64) {
        self.changed.lock().end = end.0;
        self.total.store(total, Ordering::Relaxed);
    }

    /// The first record that the builder need not read.
    pub fn end_record(&self) -> RecordId {
        RecordId(self.changed.lock().end)
    }

    /// Notes that the builder is done with all records below `next`, of which it read `records` since the last call.
    pub fn advance(&self, next: RecordId, records: u64) {
        self.changed.lock().advance(next);
        self.done.fetch_add(records, Ordering::Relaxed);
    }

    /// Number of records that the builder is done with, and how many there were when it began.
    pub fn progress(&self) -> (u64, u64) {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        (done.min(total), total)
    }

    /// Marks the build as waiting for its turn until the result is dropped.
    pub fn wait_for_turn(&self) -> WaitingBuild<'_> {
        self.is_waiting.store(true, Ordering::Relaxed);
        WaitingBuild(self)
    }

    /// Whether the build waits for its turn.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Whether a writer has put the record's keys. The caller holds the record's lock.
    pub fn is_changed(&self, record: RecordId) -> bool {
        self.changed.lock().contains(record)
    }

    /// Stops the build with `failure` before its next step. The caller keeps the catalog from changing.
    pub fn abort(&self, failure: Failure) {
        self.course.lock().aborted.get_or_insert(failure);
    }

    /// Checks that the build has not been aborted.
    /// # Errors
    /// The failure given to [`Self::abort`]. `DuplicateKey` is found elsewhere.
    pub fn check(&self) -> Result<()> {
        self.course.lock().aborted.clone().map_or(Ok(()), Err)
    }

    /// Ends the build and wakes the operations that wait for it.
    pub fn end(&self) {
        self.course.lock().has_ended = true;
        self.ended.notify_all();
    }

    pub fn has_ended(&self) -> bool {
        self.course.lock().has_ended
    }

    /// Waits for the build to end.
    /// # Errors
    /// As `OperationContext::check`, which includes `Interrupted` if the operation is killed.
    pub fn wait(&self, operation: &dyn OperationSource) -> Result<()> {
        let mut course = self.course.lock();
        while !course.has_ended {
            let until = operation.operation().may_wait_until()?;
            self.ended.wait_until(&mut course, until);
        }
        Ok(())
    }

    /// The first keys, at most `count_max`, that lead to another record, or to none, while records wait for them.
    pub fn contested_keys(&self, count_max: usize) -> Vec<(KeyspaceId, Vec<u8>)> {
        self.others.lock().records.keys().take(count_max).cloned().collect()
    }

    /// The records that wait for a key.
    pub fn other_holders(&self, key: &(KeyspaceId, Vec<u8>)) -> BTreeSet<RecordId> {
        self.others.lock().records.get(key).cloned().unwrap_or_default()
    }

    /// Takes over what a committed batch did to a record.
    pub fn note(&self, note: BuildNote) {
        match note {
            BuildNote::Changed(record) => self.changed.lock().note(record),
            BuildNote::HolderAdded(keyspace, key, record) => self.others.lock().add(keyspace, key, record),
            BuildNote::HolderRemoved(keyspace, key, record) => self.others.lock().remove(keyspace, key, record),
        }
    }

    /// Whether the build should fail because too many records wait for keys.
    pub fn is_crowded(&self) -> bool {
        self.others.lock().count > OTHER_HOLDERS_MAX
    }
}

/// The failure of a build whose index or collection is dropped.
pub(crate) fn aborted(reason: &str) -> Failure {
    Failure::new(ErrorCode::INDEX_BUILD_ABORTED, format!("Index build aborted: {reason}"))
}
