//! Changes of the role, beside commits.

use crate::engines::fake::fake;
use crate::{Batch, EngineTable, KeyspaceId, RecordId, StoreOptions, Survival};
use crate::{Lsn, Position, Role, StorageError, Store};

fn insertion(record: u64) -> Batch<'static> {
    let mut batch = Batch::new();
    batch.insert_record(KeyspaceId(7), RecordId(record), vec![7; 100]);
    batch
}

#[test]
fn a_secondary_refuses_all_commits_and_nothing_is_written() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (own, told) = fake("own", Survival::Durable);
    let store = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
    store.commit(&insertion(1)).expect("a standalone store takes writes");
    store.step_down();
    assert_eq!(store.role(), Role::Secondary);
    let (end, visible, applied) = (store.last_position(), store.visible_end(), told.applied.lock().len());
    let mut held_up = Batch::new();
    for record in 0..17 << 10 {
        held_up.insert_record(KeyspaceId(7), RecordId(record), vec![7]);
    }
    let refusals = [
        store.commit(&insertion(2)).map(drop),
        store.commit(&Batch::new()).map(drop),
        store.commit_placed(&insertion(2)).map(drop),
        store.commit(&held_up).map(drop),
        store.commit_chain(&[insertion(2), insertion(3)]).map(drop),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Err(StorageError::NotPrimary)), "a promise is broken: {refusal:?}");
    }
    assert_eq!((store.last_position(), store.visible_end(), told.applied.lock().len()), (end, visible, applied));
    store.begin_term(1).expect("begins");
    assert_eq!(store.role(), Role::Primary { term: 1 });
    store.commit(&insertion(2)).expect("a primary takes writes");
    store.close().expect("closes");
}

#[test]
fn a_chain_that_has_begun_ends_before_the_role_changes() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (own, told) = fake("own", Survival::Durable);
    let store = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
    // The engine cannot apply the chain while this is locked.
    let applied = told.applied.lock();
    std::thread::scope(|scope| {
        let chain = scope.spawn(|| store.commit_chain(&[insertion(1), insertion(2)]));
        while store.chain.try_lock().is_some() {
            std::thread::yield_now();
        }
        let visible = store.visible_end();
        let down = scope.spawn(|| store.step_down());
        // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!((store.role(), store.visible_end()), (Role::Standalone, visible), "the chain is not whole yet");
        drop(applied);
        chain.join().expect("no panic").expect("it had begun");
        down.join().expect("no panic");
        assert!(store.visible_end() > visible);
    });
    assert_eq!(told.applied.lock().len(), 2);
    let refused = store.commit_chain(&[insertion(3), insertion(4)]);
    assert!(matches!(refused, Err(StorageError::NotPrimary)), "{refused:?}");
    assert_eq!(told.applied.lock().len(), 2);
    store.close().expect("closes");
}

/// A new member's store, with engines that only record their calls.
fn member() -> (tempfile::TempDir, std::sync::Arc<Store>) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let (own, _) = fake("own", Survival::Durable);
    let store = Store::open_member(directory.path(), StoreOptions::at_rest(), EngineTable::only(own), Lsn(0));
    (directory, store.expect("opens"))
}

/// All of a log, as it is shipped.
fn shipped(store: &Store) -> Vec<u8> {
    let (places, mut bytes) = (store.places(), Vec::new());
    store.write(Lsn(places.end.0 - 1)).expect("written");
    store.read_raw_log(places.start, 0).and_then(|mut reader| reader.read(1 << 20, &mut bytes)).expect("readable");
    bytes
}

#[test]
fn a_member_becomes_primary_only_once_all_of_its_log_is_applied() {
    let ((_one, other), (_two, store)) = (member(), member());
    let new = store.last_position();
    assert_eq!((other.role(), new), (Role::Secondary, Position { term: 0, end: store.places().start.0 }));
    other.begin_term(3).expect("its log is empty");
    other.commit(&insertion(1)).expect("a primary takes writes");
    let end = store.append_raw(new, &shipped(&other)).expect("appended");
    assert_eq!(end, other.last_position());
    let refused = store.append_raw(new, &[]);
    assert!(matches!(&refused, Err(StorageError::Diverged { asked, found }) if (*asked, *found) == (new, end)));
    let refused = store.begin_term(4);
    assert!(matches!(refused, Err(StorageError::Unapplied)), "a promise is broken: {refused:?}");
    assert_eq!((store.role(), store.last_position()), (Role::Secondary, end));
    // The records are above the commit point, and the new primary keeps them nevertheless.
    assert_eq!(store.apply_committed().expect("nothing is committed"), store.places().start);
    let mut applying = store.applying(Lsn(end.end)).expect("a secondary applies");
    while applying.advance().expect("readable") {
        applying.apply().expect("applied");
    }
    drop(applying);
    let began = store.begin_term(4).expect("begins");
    assert_eq!((began, store.role()), (Lsn(end.end), Role::Primary { term: 4 }));
    assert_eq!(store.visible_end(), Lsn(store.last_position().end));
}

#[test]
fn only_a_secondary_takes_records_of_other_members() {
    let ((_one, other), (_two, store)) = (member(), member());
    other.begin_term(1).expect("begins");
    let bytes = shipped(&other);
    let refusals = |store: &Store| {
        let at = store.last_position();
        let refused = [
            store.append_raw(at, &bytes).map(drop),
            store.apply_committed().map(drop),
            store.applying(Lsn(u64::MAX)).map(drop),
            store.truncate_log(at),
        ];
        assert_eq!(store.last_position(), at);
        refused.iter().all(|outcome| matches!(outcome, Err(StorageError::NotSecondary)))
    };
    store.begin_term(1).expect("begins");
    store.commit(&insertion(2)).expect("a primary takes writes");
    assert!(refusals(&store), "a promise is broken");
    let directory = tempfile::tempdir().expect("temporary directory");
    let (own, _) = fake("own", Survival::Durable);
    let alone = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
    assert!(refusals(&alone), "a promise is broken");
    // The primary goes on after its own records once it has stepped down.
    store.step_down();
    other.commit(&insertion(2)).expect("a primary takes writes");
    let at = store.last_position();
    other.begin_term(2).expect("begins");
    let mut next = Vec::new();
    other.write(Lsn(other.last_position().end - 1)).expect("written");
    other.read_raw_log(Lsn(at.end), 0).and_then(|mut reader| reader.read(1 << 20, &mut next)).expect("readable");
    store.append_raw(at, &next).expect("it follows");
    store.set_committed(Lsn(u64::MAX));
    assert_eq!(store.apply_committed().expect("applied"), Lsn(other.last_position().end));
}
