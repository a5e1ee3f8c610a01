//! A primary whose last records no other member has steps down, and takes them back.

use crate::engines::fake::{Told, fake};
use crate::{
    Batch, EngineTable, KeyspaceId, Lsn, Position, RecordId, Role, SEGMENT_BYTES, StorageError, Store, StoreOptions,
    Survival, make_directory,
};
use bunko_testkit::directory::crash_copy;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

fn open(path: &Path) -> (Arc<Store>, Arc<Told>) {
    let (own, told) = fake("own", Survival::Durable);
    let store = Store::open_member(path, StoreOptions::at_rest(), EngineTable::only(own), Lsn(0));
    (store.expect("opens"), told)
}

fn insert(store: &Store, record: u64, bytes: usize) -> Position {
    let mut batch = Batch::new();
    batch.insert_record(KeyspaceId(record as u32), RecordId(record), vec![7; bytes]);
    store.commit(&batch).expect("committed");
    store.last_position()
}

/// A secondary that was primary: its log up to the second position is committed, it has the record 1; the other members
/// do not have the records 2 and 3.
fn parted() -> (TempDir, Arc<Store>, Arc<Told>, [Position; 2]) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (store, told) = open(directory.path());
    store.begin_term(3).expect("begins");
    let before = store.last_position();
    let common = insert(&store, 1, 10);
    store.set_committed(Lsn(before.end));
    // The lost records reach into another segment.
    insert(&store, 2, SEGMENT_BYTES as usize / 2);
    insert(&store, 3, SEGMENT_BYTES as usize / 2);
    store.step_down();
    (directory, store, told, [before, common])
}

fn has_intent(directory: &TempDir) -> bool {
    directory.path().join("log/truncation.intent").exists()
}

#[test]
fn applied_records_are_taken_back_at_the_next_start() {
    let (directory, store, _, [_, common]) = parted();
    let refused = store.truncate_log(common);
    assert!(matches!(refused, Err(StorageError::AppliedAbove { .. })), "{refused:?}");
    let rollback = store.begin_rollback(common).expect("begins");
    let (mut records, mut lost) = (rollback.records(), Vec::new());
    while let Some(record) = records.next_record().expect("readable") {
        lost.extend(record.effects.map(|effect| effect.keyspace().0));
    }
    assert_eq!(lost, [2, 3]);
    rollback.intend().expect("durable");
    // From here on a kill changes nothing: the next start takes the records back.
    let killed = crash_copy(directory.path());
    let end = store.last_position();
    let refusals = [
        store.append_raw(end, &[]).map(drop),
        store.apply_committed().map(drop),
        store.truncate_log(common),
        store.begin_term(9).map(drop),
        store.begin_rollback(common).map(drop),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Err(StorageError::RolledBack)), "a promise is broken: {refusal:?}");
    }
    store.set_committed(Lsn(end.end));
    store.checkpoint().expect("left out");
    store.close().expect("closes");
    drop(store);
    for directory in [killed, directory] {
        let (store, told) = open(directory.path());
        assert_eq!((store.role(), store.last_position()), (Role::Secondary, common));
        assert!(!has_intent(&directory) && !directory.path().join("log/000000000001.segment").exists());
        store.set_committed(Lsn(common.end));
        store.apply_committed().expect("applied");
        assert_eq!(*told.applied.lock(), [[1]]);
        // Term 3 stays in the table, because records of it were kept; term 4 is new.
        store.begin_term(4).expect("begins");
        assert_eq!(store.terms().iter().map(|(term, _)| term).collect::<Vec<_>>(), [3, 4]);
        store.close().expect("closes");
    }
}

#[test]
fn nothing_follows_a_rollback_that_the_next_start_may_find() {
    let (directory, store, _, [_, common]) = parted();
    // The intent cannot be renamed to its name, because a directory has it.
    make_directory(&directory.path().join("log/truncation.intent")).expect("made");
    store.begin_rollback(common).expect("begins").intend().expect_err("not renamed");
    let refused = store.apply_committed();
    assert!(matches!(refused, Err(StorageError::LogFailed)), "a promise is broken: {refused:?}");
}

#[test]
fn records_that_a_checkpoint_has_need_an_initial_sync() {
    for is_half_done in [false, true] {
        let (directory, store, told, [_, common]) = parted();
        if is_half_done {
            // A kill came between the engine's files and the manifest.
            *told.files_end.lock() = Lsn(common.end + 1);
        } else {
            store.commit_what_is_visible();
            store.checkpoint().expect("checkpoint");
            // The state of a member whose checkpoint passed the commit point while it was primary.
            store.commit_point.held.store(common.end, std::sync::atomic::Ordering::SeqCst);
        }
        let refused = store.begin_rollback(common).map(drop);
        assert!(matches!(refused, Err(StorageError::NeedsInitialSync { .. })), "{refused:?}");
        assert!(!has_intent(&directory));
    }
}

#[test]
fn a_start_applies_what_files_of_engines_have() {
    let (directory, store, _, [before, common]) = parted();
    store.write(Lsn(store.last_position().end - 1)).expect("written");
    let killed = crash_copy(directory.path());
    let (own, told) = fake("own", Survival::Durable);
    // A kill came between the engine's files and the manifest. The files have the record 1, which is not committed.
    *told.files_end.lock() = Lsn(before.end + 1);
    let again = Store::open_member(killed.path(), StoreOptions::at_rest(), EngineTable::only(own), Lsn(0));
    let again = again.expect("opens");
    assert_eq!((again.visible_end(), again.last_position()), (Lsn(common.end), store.last_position()));
    assert_eq!(*told.applied.lock(), [[1]]);
    let refused = again.truncate_log(before);
    assert!(matches!(refused, Err(StorageError::AppliedAbove { .. })), "a promise is broken: {refused:?}");
    let refused = again.begin_rollback(before).map(drop);
    assert!(matches!(refused, Err(StorageError::NeedsInitialSync { .. })), "a promise is broken: {refused:?}");
}

#[test]
fn committed_records_are_never_taken_back() {
    let (directory, store, _, [before, common]) = parted();
    let unknown = [Position { term: 2, ..common }, Position { end: common.end + (1 << 40), ..common }];
    for position in unknown {
        let refused = store.begin_rollback(position).map(drop);
        assert!(matches!(refused, Err(StorageError::Diverged { .. })), "{refused:?}");
    }
    store.begin_rollback(before).map(drop).expect("nothing behind it is committed");
    store.set_committed(Lsn(common.end));
    let refused = store.begin_rollback(before).map(drop);
    assert!(matches!(refused, Err(StorageError::CommittedAbove { .. })), "a promise is broken: {refused:?}");
    assert!(!has_intent(&directory));
    // Records that are committed and not applied are safe too.
    let (other, second) = (tempfile::tempdir().expect("temporary directory"), store.last_position());
    let (follower, _) = open(other.path());
    let mut bytes = Vec::new();
    store.read_raw_log(store.places().start, 0).and_then(|mut log| log.read(1 << 30, &mut bytes)).expect("readable");
    follower.append_raw(follower.last_position(), &bytes).expect("appended");
    follower.set_committed(Lsn(second.end));
    let refused = follower.truncate_log(common);
    assert!(matches!(refused, Err(StorageError::CommittedAbove { .. })), "a promise is broken: {refused:?}");
}
