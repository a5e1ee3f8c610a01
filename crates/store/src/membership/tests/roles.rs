//! Changes of the role, beside commits.

use crate::engines::fake::fake;
use crate::{Batch, EngineTable, KeyspaceId, RecordId, StoreOptions, Survival};
use crate::{Role, StorageError, Store};

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
