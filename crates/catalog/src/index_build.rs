//! Builds indexes.
//!
//! A new index is first shown to writers, who maintain it from then on. Then the records that were there before are
//! read in steps. Keys are derived from a snapshot without any lock, sorted, and put into the index a few hundred at a
//! time, under the locks of their records. So writers wait for about a millisecond at most, however many keys a record
//! has.
//!
//! If the engines have much to flush, the build waits for them without any lock (`Store::wait_for_leisure`), before
//! writers would have to. A build that the end of a process interrupts begins again at the next start (`resumed_build`).
//! State that the builder shares with writers is in `building`, and the queue of builds in `build_queue`.
//!
//! These steps are not statements of [`crate::commit`]: they write no document, belong to no client's unit of work, and
//! meet no claim, because no transaction writes while an index is built. A step does not read records again under their
//! locks: it leaves out records that a writer has changed since, with all their keys.

use crate::build_notes::BuildNotes;
use crate::building::{IndexBuild, aborted};
use crate::catalog::Difference;
use crate::duplicate_key::duplicate_key;
use crate::gathered_keys::{FoundKey, Gathered, NextKeys};
use crate::transaction::announce;
use crate::waiting::{lock_stripes, share};
use crate::write::{key_stripe, record_stripe};
use crate::{Catalog, Collection, Index, from_storage};
use bunko_bson::DocumentRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{OperationContext, OperationSource, RunOn};
use bunko_store::failpoint::{self, Failpoint};
use bunko_store::planted::{self, Bug};
use bunko_store::{Batch, Direction, KeyspaceId, Lsn, RecordId, RecordRange, StorageError, StripeNumbers, View};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of keys, and of their bytes, that are put while their locks are held once.
const KEYS_PER_STEP: usize = 512;
const BYTES_PER_STEP: usize = 128 << 10;
/// A build of at least this many records has its keys flushed and merged at the end; the keys of a smaller build may
/// all be in the memtable.
const RECORDS_OF_LARGE_BUILD: u64 = 100_000;
/// A build stops if the files that engines pinned in memory take more than this part (1/n) of the memory limit of all
/// operations.
const PINNED_PART: u64 = 2;
/// Approximate bytes written with a key, besides the key.
const BYTES_BESIDE_KEY: usize = 12;

/// Number of keys that one step puts together; at least 1.
fn step_length(lengths: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = |length: &usize| {
        bytes += length;
        bytes <= BYTES_PER_STEP
    };
    lengths.take(KEYS_PER_STEP).take_while(fits).count().max(1)
}

impl Catalog {
    /// Builds indexes that writers see already, and lets queries use them. After a failure, the caller removes the
    /// indexes, or leaves them for the next start.
    pub(crate) fn build(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        build: &IndexBuild,
        operation: &dyn OperationSource,
    ) -> Result<Lsn> {
        let outcome = self.fill_in_turn(collection, built, build, operation).and_then(|()| {
            failpoint::pass(Failpoint::IndexFilled);
            let _announced = announce(collection, operation)?;
            let _changes = self.changes.lock();
            build.check()?;
            let indexes = collection.indexes().as_ref().clone();
            self.save_indexes(collection, indexes, Difference::Built(built, build), &*OperationContext::unlimited())
        });
        // The keys lie in as many sorted files as there were flushes during the build, so a merge must follow.
        if outcome.is_ok() && build.progress().0 >= RECORDS_OF_LARGE_BUILD {
            self.store.prepare_for_reads();
        }
        outcome.map_err(|failure| {
            let failure = if collection.is_dropped() { aborted("collection dropped") } else { failure };
            failure.with_prefix(&self.failed_prefix(collection))
        })
    }

    fn failed_prefix(&self, collection: &Collection) -> String {
        let (build, own) = (uuid_text((self.new_uuid)()), uuid_text(collection.uuid));
        format!("Index build failed: {build}: Collection {} ( {own} ) :: caused by :: ", collection.namespace())
    }

    fn check_build(&self, build: &IndexBuild, operation: &dyn OperationSource) -> Result<()> {
        self.refuse_while_stopping()?;
        build.check()?;
        operation.operation().check()
    }

    /// Checks the memory that the engines' files pin.
    /// # Errors
    /// `ExceededMemoryLimit` if the data on disk pins so much memory that more of it would leave too little for
    /// operations. An index with long keys pins about half of its size.
    fn check_pinned(&self, operation: &dyn OperationSource) -> Result<()> {
        let bytes_max = operation.operation().server_memory().bytes_max() / PINNED_PART;
        let bytes = self.store.pinned_bytes();
        if bytes <= bytes_max {
            return Ok(());
        }
        let message = format!(
            "an index build would take more memory: the server holds {bytes} bytes to find the present indexes on disk, \
             and the limit for builds is {bytes_max} bytes"
        );
        Err(Failure::new(ErrorCode::EXCEEDED_MEMORY_LIMIT, message))
    }

    /// Checks whether builds may go on.
    /// # Errors
    /// `InterruptedAtShutdown`, `InterruptedDueToReplStateChange`.
    pub(crate) fn refuse_while_stopping(&self) -> Result<()> {
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(Failure::new(ErrorCode::INTERRUPTED_AT_SHUTDOWN, "interrupted at shutdown"));
        }
        if self.has_stepped_down.load(Ordering::Acquire) { Err(from_storage(StorageError::NotPrimary)) } else { Ok(()) }
    }

    /// Fills the indexes when it is the build's turn and there is memory for it. Small builds, which may run on a
    /// thread that serves other operations, and builds of empty collections do not wait.
    fn fill_in_turn(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        build: &IndexBuild,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        if build.progress().1 == 0 || operation.operation().run_on() != RunOn::OwnThread {
            let gathered = Gathered::new(built.len(), self.index_builds.bytes_max());
            return self.fill(collection, built, build, gathered, operation);
        }
        let until = || {
            self.refuse_while_stopping()?;
            build.check()?;
            operation.operation().may_wait_until()
        };
        let waiting = build.wait_for_turn();
        let _active = self.index_builds.enter(&until)?;
        let gathered = Gathered::new(built.len(), self.index_builds.bytes_max());
        let _drawn = operation.operation().draw_in_turn(gathered.held_bytes_max())?;
        drop(waiting);
        self.fill(collection, built, build, gathered, operation)
    }

    /// Adds the keys of all records from before the index was shown.
    fn fill(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        build: &IndexBuild,
        mut gathered: Gathered,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        let end = build.end_record();
        let mut next = NextKeys::of(RecordId(0));
        while next.record < end {
            self.check_build(build, operation)?;
            self.check_pinned(operation)?;
            gathered.clear();
            next = self.gather(collection, built, (next, end), &mut gathered, operation)?;
            self.note_arrays(collection, built, build, &gathered, operation)?;
            gathered.sort();
            let mut rest = gathered.keys();
            while !rest.is_empty() {
                let (step, later) = rest.split_at(step_length(rest.iter().map(FoundKey::length)));
                self.check_build(build, operation)?;
                self.put_step(collection, built, build, (&gathered, step), operation)?;
                if operation.operation().run_on() == RunOn::OwnThread {
                    // Nothing is locked here. A build writes faster than the engines flush, so without this wait the
                    // writers would have to wait.
                    self.store.wait_for_leisure();
                }
                rest = later;
            }
            for (record, failure) in gathered.refused.drain(..) {
                self.refuse_unless_changed(collection, build, record, failure, operation)?;
            }
            if build.is_crowded() {
                return Err(first_duplicate(collection, built, build));
            }
            build.advance(next.record, gathered.records);
        }
        self.settle_contested(collection, built, build, operation)
    }

    /// Derives keys from the present versions of the records before `end`. Returns where to continue.
    pub(crate) fn gather(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        (next, end): (NextKeys, RecordId),
        gathered: &mut Gathered,
        operation: &dyn OperationSource,
    ) -> Result<NextKeys> {
        let snapshot = self.store.snapshot();
        let records = RecordRange { start: Bound::Included(next.record), end: Bound::Excluded(end) };
        let mut cursor = snapshot.records(collection.records, records, Direction::Forward);
        while let Some((record, _, document)) = cursor.next().map_err(from_storage)? {
            operation.operation().work(1 + document.len() / 64)?;
            // If writers have changed the record since an earlier call derived some of its keys, they have put all of
            // its keys.
            let own = if record == next.record { next } else { NextKeys::of(record) };
            if let Some(index) = gathered.add(built, own, DocumentRef::trusted(document), operation)? {
                return Ok(NextKeys { record, index });
            }
            if gathered.is_full() {
                return Ok(NextKeys::of(RecordId(record.0 + 1)));
            }
        }
        Ok(NextKeys::of(end))
    }

    /// Notes the arrays and types of the documents, before their keys are put. An array may have no key: a sparse index
    /// has none for an empty array.
    fn note_arrays(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        build: &IndexBuild,
        gathered: &Gathered,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        let _structure = share(&collection.structure, operation)?;
        refuse_dropped(collection, build)?;
        self.grow_multikey(collection, built, &gathered.grown)
    }

    /// Puts keys of records that have not changed since the index was shown.
    fn put_step(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        build: &IndexBuild,
        (gathered, step): (&Gathered, &[FoundKey]),
        operation: &dyn OperationSource,
    ) -> Result<()> {
        if planted::active(Bug::ChangedRecordBuilt) {
            // The planted fault shows only if a writer comes in between.
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        let _structure = share(&collection.structure, operation)?;
        refuse_dropped(collection, build)?;
        let mut stripes: StripeNumbers =
            step.iter().map(|found| record_stripe(collection.records, found.record)).collect();
        let unique = step.iter().filter(|found| built[found.index as usize].is_unique);
        stripes.extend(unique.map(|found| key_stripe(built[found.index as usize].keyspace, gathered.of(found))));
        let _locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
        let latest = self.store.latest();
        let room = step.iter().map(|found| found.length() + BYTES_BESIDE_KEY).sum();
        let (mut batch, mut notes) = (Batch::with_room(room), BuildNotes::default());
        let mut previous: Option<(u32, &[u8])> = None;
        let is_left_out = |record| build.is_changed(record) && !planted::active(Bug::ChangedRecordBuilt);
        for found in step.iter().filter(|found| !is_left_out(found.record)) {
            let (index, key) = (&built[found.index as usize], gathered.of(found));
            if !index.is_unique {
                // No writer has put a key of this record.
                batch.put_key(index.keyspace, key, found.record);
            } else if previous == Some((found.index, key)) {
                notes.add_holder(build, index, key, found.record);
            } else {
                let own = (index.as_ref(), key);
                build.put_key(latest, own, found.record, &mut batch, &mut notes).map_err(from_storage)?;
                previous = Some((found.index, key));
            }
        }
        if !batch.is_empty() {
            self.store.commit(&batch).map_err(from_storage)?;
        }
        notes.tell();
        Ok(())
    }

    /// Ends the build for a document that cannot be indexed, unless the document has changed meanwhile.
    fn refuse_unless_changed(
        &self,
        collection: &Collection,
        build: &IndexBuild,
        record: RecordId,
        failure: Failure,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        let mut stripes = std::iter::once(record_stripe(collection.records, record)).collect();
        let _locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
        if build.is_changed(record) { Ok(()) } else { Err(failure) }
    }

    /// Gives each contested key to the only record that still needs it.
    fn settle_contested(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        build: &IndexBuild,
        operation: &dyn OperationSource,
    ) -> Result<()> {
        loop {
            let keys = build.contested_keys(KEYS_PER_STEP);
            if keys.is_empty() {
                return Ok(());
            }
            self.check_build(build, operation)?;
            let _structure = share(&collection.structure, operation)?;
            refuse_dropped(collection, build)?;
            let mut stripes = keys.iter().map(|(keyspace, key)| key_stripe(*keyspace, key)).collect();
            let _locked = lock_stripes(self.store.locks(), &mut stripes, operation)?;
            self.settle(collection, built, build, &keys)?;
        }
    }

    /// As [`Self::settle_contested`], for changes made by writers since. The caller keeps writers out.
    pub(crate) fn settle_rest(&self, collection: &Collection, built: &[Arc<Index>], build: &IndexBuild) -> Result<()> {
        loop {
            let keys = build.contested_keys(KEYS_PER_STEP);
            if keys.is_empty() {
                return Ok(());
            }
            self.settle(collection, built, build, &keys)?;
        }
    }

    /// Gives each of `keys` to the only record that still has it.
    /// # Errors
    /// `DuplicateKey` for a key that two records have.
    fn settle(
        &self,
        collection: &Collection,
        built: &[Arc<Index>],
        build: &IndexBuild,
        keys: &[(KeyspaceId, Vec<u8>)],
    ) -> Result<()> {
        let latest = self.store.latest();
        let (mut batch, mut notes) = (Batch::new(), BuildNotes::default());
        for contested in keys {
            let (keyspace, key) = contested;
            let Some(index) = built.iter().find(|index| index.keyspace == *keyspace) else { continue };
            let holder = latest.key(*keyspace, key).map_err(from_storage)?;
            let others = build.other_holders(contested);
            if others.len() + usize::from(holder.is_some()) > 1 {
                return Err(duplicate_key(collection, index, key, None));
            }
            if let Some(record) = others.first() {
                batch.put_key(*keyspace, key, *record);
                notes.remove_holder(build, index, key, *record);
            }
        }
        if !batch.is_empty() {
            self.store.commit(&batch).map_err(from_storage)?;
        }
        notes.tell();
        Ok(())
    }

    /// Stops builds within one step. The next start resumes them.
    pub fn stop_builds(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Stops builds within one step, and lets none begin until [`Catalog::step_up`]. The next step-up resumes them.
    pub fn interrupt_builds(&self) {
        self.has_stepped_down.store(true, Ordering::Release);
        // A build that notices the flag only after the next step-up would run beside the resumed one, so all running
        // builds are aborted. The lock is needed because a build that has not seen the flag is listed under it.
        let _changes = self.changes.lock();
        for index in self.interrupted_builds().iter().flat_map(crate::InterruptedBuild::indexes) {
            if let Some(build) = index.build() {
                build.abort(from_storage(StorageError::NotPrimary));
            }
        }
    }
}

fn refuse_dropped(collection: &Collection, build: &IndexBuild) -> Result<()> {
    if collection.is_dropped() {
        return Err(aborted("collection dropped"));
    }
    build.check()
}

fn first_duplicate(collection: &Collection, built: &[Arc<Index>], build: &IndexBuild) -> Failure {
    let first = build.contested_keys(1).into_iter().next();
    let found = first.and_then(|(keyspace, key)| {
        let index = built.iter().find(|index| index.keyspace == keyspace)?;
        Some(duplicate_key(collection, index, &key, None))
    });
    found.unwrap_or_else(|| Failure::new(ErrorCode::DUPLICATE_KEY, "E11000 duplicate key error"))
}

pub(crate) fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = format!("{:032x}", u128::from_be_bytes(uuid));
    for place in [20, 16, 12, 8] {
        text.insert(place, '-');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_bounded_by_keys_and_by_bytes() {
        let keys = |count: usize, bytes: usize| std::iter::repeat_n(bytes, count);
        assert_eq!(step_length(keys(3, 10)), 3);
        assert_eq!(step_length(keys(100_000, 10)), KEYS_PER_STEP);
        assert_eq!(step_length(keys(100, BYTES_PER_STEP / 4)), 4);
        assert_eq!(step_length(keys(2, 2 * BYTES_PER_STEP)), 1);
    }
}
