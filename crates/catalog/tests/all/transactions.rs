//! Transactions: their view, their isolation from other operations, and their effects.

mod bank;
mod chain;
mod overlay;
mod retries;
mod world;
mod writers;

use crate::opened::{namespace, open, spec, survival};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::{CreateOptions, Transaction, TransactionState, Verdict, WriteHistory};
use bunko_engines::ENGINES;
use bunko_errors::ErrorCode;
use bunko_operation::OperationContext;
use bunko_store::{Direction, RecordRange, Survival, View};
use bunko_testkit::directory::crash_copy;
use bunko_testkit::patience::wait_for;
use std::sync::Arc;
use std::time::Duration;
use world::{SESSION, Unit, World, code, commit, document, operation, pair, unique, with_engines};

const BOTH: [(i32, i32); 2] = [(1, 10), (2, 20)];

#[test]
fn only_the_transaction_itself_sees_uncommitted_writes() {
    with_engines(|world| {
        let transaction = world.begin();
        let own = Some(&transaction);
        assert_eq!(world.seen(own, "a"), BOTH);
        world.insert(own, "a", &[document(3, 30, "three")]).expect("inserted");
        world.insert(own, "b", &[document(7, 70, "seven")]).expect("inserted");
        assert!(world.set(own, "a", 1, 11, "one more").expect("changed"));
        assert!(world.delete(own, "a", 2).expect("deleted"));
        assert_eq!(world.seen(own, "a"), [(1, 11), (3, 30)]);
        assert_eq!(world.seen(own, "b"), [(7, 70)]);
        assert_eq!((world.seen(None, "a"), world.seen(None, "b")), (BOTH.to_vec(), vec![]));
        let statistics = transaction.statistics();
        assert_eq!((statistics.batches, statistics.collections), (4, 2));
        assert!(statistics.bytes > 0 && statistics.owned > 0);
        commit(&transaction);
        assert_eq!(transaction.state(), TransactionState::Committed);
        assert_eq!((world.seen(None, "a"), world.seen(None, "b")), (vec![(1, 11), (3, 30)], vec![(7, 70)]));
        commit(&transaction);
        assert_eq!(code(world.insert(own, "a", &[document(9, 9, "nine")])), ErrorCode::NO_SUCH_TRANSACTION);
    });
}

#[test]
fn commits_of_others_after_the_snapshot_are_not_seen() {
    with_engines(|world| {
        let transaction = world.begin();
        assert_eq!(world.seen(Some(&transaction), "a"), BOTH);
        world.set(None, "a", 1, 99, "one").expect("changed");
        world.insert(None, "b", &[document(4, 40, "four")]).expect("inserted");
        assert_eq!(world.seen(Some(&transaction), "a"), BOTH);
        assert_eq!(world.seen(Some(&transaction), "b"), []);
        transaction.commit(&mut WriteHistory::default()).expect("nothing to commit");
    });
}

#[test]
fn an_aborted_transaction_leaves_nothing_and_lets_others_in() {
    with_engines(|world| {
        let transaction = world.begin();
        let own = Some(&transaction);
        world.insert(own, "a", &[document(3, 30, "three")]).expect("inserted");
        world.set(own, "a", 1, 11, "won").expect("changed");
        world.delete(own, "a", 2).expect("deleted");
        transaction.abort();
        assert_eq!(world.seen(None, "a"), BOTH);
        assert_eq!(code(transaction.commit(&mut WriteHistory::default())), ErrorCode::NO_SUCH_TRANSACTION);
        assert_eq!(code(world.set(own, "a", 1, 1, "x")), ErrorCode::NO_SUCH_TRANSACTION);
        world.insert(None, "a", &[document(3, 31, "three")]).expect("the key is free");
        world.set(None, "a", 1, 12, "won").expect("changed");
        let dropped = world.begin();
        world.set(Some(&dropped), "a", 1, 13, "lost").expect("changed");
        drop(dropped);
        assert!(world.delete(None, "a", 1).expect("deleted"), "a transaction that is dropped is aborted");
    });
}

#[test]
fn the_second_writer_of_a_document_is_refused() {
    with_engines(|world| {
        let (one, other) = (world.begin(), world.begin());
        assert_eq!((world.seen(Some(&one), "a"), world.seen(Some(&other), "a")), (BOTH.to_vec(), BOTH.to_vec()));
        world.change(Some(&one), "a", 1, |n| Verdict::Replace(document(1, n + 1, "one"))).expect("changed");
        let lost = world.change(Some(&other), "a", 1, |n| Verdict::Replace(document(1, n + 1, "one")));
        assert_eq!(code(lost), ErrorCode::WRITE_CONFLICT, "owned");
        commit(&one);
        let late = world.begin();
        world.seen(Some(&late), "a");
        world.set(None, "a", 1, 12, "one").expect("changed");
        let lost = world.change(Some(&late), "a", 1, |n| Verdict::Replace(document(1, n + 1, "one")));
        assert_eq!(code(lost), ErrorCode::WRITE_CONFLICT, "changed since the snapshot");
        world.delete(None, "a", 2).expect("deleted");
        assert_eq!(code(world.delete(Some(&late), "a", 2)), ErrorCode::WRITE_CONFLICT, "deleted since the snapshot");
    });
}

#[test]
fn write_skew_is_allowed() {
    with_engines(|world| {
        let (one, other) = (world.begin(), world.begin());
        assert_eq!((world.seen(Some(&one), "a"), world.seen(Some(&other), "a")), (BOTH.to_vec(), BOTH.to_vec()));
        world.set(Some(&one), "a", 1, 0, "one").expect("changed");
        world.set(Some(&other), "a", 2, 0, "two").expect("changed");
        commit(&one);
        commit(&other);
        assert_eq!(world.seen(None, "a"), [(1, 0), (2, 0)]);
    });
}

#[test]
fn unique_keys_are_one_transactions_alone() {
    with_engines(|world| {
        let (one, other) = (world.begin(), world.begin());
        assert_eq!((world.seen(Some(&one), "a"), world.seen(Some(&other), "a")), (BOTH.to_vec(), BOTH.to_vec()));
        let insert = |unit: Unit<'_>, id, u| world.insert(unit, "a", &[document(id, id, u)]);
        assert_eq!(code(insert(Some(&one), 5, "one")), ErrorCode::DUPLICATE_KEY, "in the snapshot");
        insert(Some(&one), 6, "six").expect("inserted");
        assert_eq!(code(insert(Some(&one), 7, "six")), ErrorCode::DUPLICATE_KEY, "its own");
        assert_eq!(code(insert(Some(&other), 8, "six")), ErrorCode::WRITE_CONFLICT, "owned");
        assert_eq!(code(insert(Some(&other), 6, "other six")), ErrorCode::WRITE_CONFLICT, "its _id is owned");
        insert(None, 9, "nine").expect("inserted");
        assert_eq!(code(insert(Some(&one), 10, "nine")), ErrorCode::WRITE_CONFLICT, "inserted since the snapshot");
        world.delete(Some(&one), "a", 1).expect("deleted");
        assert_eq!(code(insert(Some(&other), 11, "one")), ErrorCode::WRITE_CONFLICT, "given up, not committed");
        insert(Some(&one), 1, "one").expect("both keys are free inside");
        world.delete(Some(&one), "a", 2).expect("deleted");
        insert(Some(&one), 2, "one more").expect("its _id is free inside");
        insert(Some(&one), 12, "two").expect("its key is free inside");
        commit(&one);
        assert_eq!(world.seen(None, "a"), [(1, 1), (2, 2), (6, 6), (9, 9), (12, 12)]);
    });
}

#[test]
fn a_key_may_come_and_go_often() {
    with_engines(|world| {
        let transaction = world.begin();
        let own = Some(&transaction);
        for round in 0..20 {
            world.insert(own, "a", &[document(3, round, "three")]).expect("inserted");
            world.set(own, "a", 3, round + 1, "drei").expect("changed");
            world.set(own, "a", 1, round, "one").expect("changed");
            assert_eq!(world.seen(own, "a"), [(1, round), (2, 20), (3, round + 1)]);
            world.delete(own, "a", 3).expect("deleted");
        }
        world.delete(own, "a", 2).expect("deleted");
        world.insert(own, "a", &[document(2, 22, "two")]).expect("inserted");
        commit(&transaction);
        assert_eq!(world.seen(None, "a"), [(1, 19), (2, 22)]);
        world.set(None, "a", 2, 23, "two").expect("its key leads to the new record");
        world.delete(None, "a", 2).expect("deleted");
    });
}

#[test]
fn documents_being_read_stay_until_the_statement_ends() {
    with_engines(|world| {
        let transaction = world.begin();
        let own = Some(&transaction);
        let collection = world.collection("a");
        let view = collection.snapshot_for(&*operation(own)).expect("readable");
        let mut cursor = view.records(collection.records(), RecordRange::ALL, Direction::Forward);
        let mut changed = 0;
        while let Some((_, _, bytes)) = cursor.next().expect("readable") {
            let (id, n) = pair(bytes);
            world.delete(own, "a", id).expect("deleted");
            world.insert(own, "a", &[document(id + 100, n, &format!("moved {id}"))]).expect("inserted");
            changed += 1;
        }
        assert_eq!((changed, world.seen(own, "a")), (2, vec![(101, 10), (102, 20)]));
        let again = collection.snapshot_for(&*operation(own)).expect("readable");
        let mut cursor = again.records(collection.records(), RecordRange::ALL, Direction::Forward);
        for id in [101, 102] {
            world.set(own, "a", id, 1, &format!("set {id}")).expect("changed");
            assert_eq!(cursor.next().expect("readable").map(|(_, _, bytes)| pair(bytes).1), Some((id - 100) * 10));
        }
        assert!(cursor.next().expect("readable").is_none());
        transaction.abort();
    });
}

#[test]
fn a_writer_outside_waits_and_goes_on() {
    with_engines(|world| {
        for ends in [Transaction::abort, commit as fn(&Transaction)] {
            let transaction = world.begin();
            world.set(Some(&transaction), "a", 1, 100, "hundred").expect("changed");
            world.insert(Some(&transaction), "a", &[document(5, 5, "five")]).expect("inserted");
            std::thread::scope(|scope| {
                let changes =
                    scope.spawn(|| world.change(None, "a", 1, |n| Verdict::Replace(document(1, n + 1, "won"))));
                let inserts = scope.spawn(|| world.insert(None, "a", &[document(6, 6, "five")]));
                let takes = scope.spawn(|| world.insert(None, "a", &[document(7, 7, "one")]));
                world.set(None, "a", 2, 21, "two").expect("others are not waited for");
                // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
                std::thread::sleep(Duration::from_millis(20));
                assert!(!changes.is_finished() && !inserts.is_finished() && !takes.is_finished());
                ends(&transaction);
                assert!(changes.join().expect("no panic").expect("changed"));
                let is_committed = transaction.state() == TransactionState::Committed;
                assert_eq!(inserts.join().expect("no panic").is_err(), is_committed);
                let _ = takes.join().expect("no panic");
            });
            world.assert_valid();
            for id in [5, 6, 7] {
                world.delete(None, "a", id).expect("deleted");
            }
            world.set(None, "a", 1, 10, "one").expect("changed");
        }
    });
}

#[test]
fn a_drop_waits_for_readers_and_keeps_later_transactions_out() {
    with_engines(|world| {
        let transaction = world.begin();
        world.seen(Some(&transaction), "b");
        std::thread::scope(|scope| {
            let dropping = scope.spawn(|| world.catalog.drop_collection(&namespace("b"), &*operation(None)));
            let refused = wait_for(|| {
                let late = world.begin();
                let read = world.collection("b").snapshot_for(&*operation(Some(&late)));
                read.err().ok_or_else(|| "the drop does not begin".to_owned())
            });
            assert!(!dropping.is_finished());
            assert_eq!(refused.code(), ErrorCode::LOCK_TIMEOUT);
            world.insert(Some(&transaction), "b", &[document(1, 1, "b")]).expect("it is in it already");
            commit(&transaction);
            assert!(dropping.join().expect("no panic").expect("dropped").is_some());
        });
        world.insert(None, "b", &[document(2, 2, "anew")]).expect("inserted");
    });
}

#[test]
fn a_collection_that_changed_since_the_snapshot_is_not_read() {
    with_engines(|world| {
        let transaction = world.begin();
        world.seen(Some(&transaction), "a");
        world.catalog.create_indexes(&world.collection("b"), &[spec("x")], &*operation(None)).expect("built");
        world.insert(None, "c", &[document(1, 1, "c")]).expect("inserted");
        for name in ["b", "c"] {
            let refused = world.collection(name).snapshot_for(&*operation(Some(&transaction))).err().expect("refused");
            assert_eq!(refused.code(), ErrorCode::SNAPSHOT_UNAVAILABLE);
        }
        transaction.abort();
        world.seen(Some(&world.begin()), "c");
    });
}

#[test]
fn arrays_and_large_documents_go_through() {
    with_engines(|world| {
        let transaction = world.begin();
        let own = Some(&transaction);
        let many: ArrayBuf = (0..50).collect();
        let large = "x".repeat(100_000);
        world.seen(own, "a");
        for id in 10..40 {
            let document = document(id, id, &format!("u{id}")).with("many", &many).with("large", large.as_str());
            world.insert(own, "b", &[document]).expect("inserted");
        }
        assert_eq!(world.seen(own, "b").len(), 30);
        commit(&transaction);
        assert_eq!(world.seen(None, "b").len(), 30);
    });
}

#[test]
fn more_than_its_memory_is_refused() {
    with_engines(|world| {
        world.catalog.transaction_memory().set_one_bytes_max(60 << 20);
        let transaction = world.begin();
        let large = "x".repeat(15 << 20);
        let mut refused = None;
        for id in 0..6 {
            let document = document(id + 10, id, &format!("u{id}")).with("large", large.as_str());
            refused = world.insert(Some(&transaction), "b", &[document]).err().or(refused);
        }
        assert_eq!(refused.expect("the last one").code(), ErrorCode::TRANSACTION_TOO_LARGE);
        transaction.abort();
        assert_eq!(world.catalog.transaction_memory().held_bytes(), 0);
    });
}

#[test]
fn a_restart_keeps_what_was_committed_whole_and_nothing_else() {
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut history = WriteHistory::default();
        {
            let world = World::new(directory.path(), engine);
            let (one, other) = (world.begin(), world.begin());
            world.set(Some(&one), "a", 1, 11, "one").expect("changed");
            world.delete(Some(&one), "a", 2).expect("deleted");
            world.insert(Some(&one), "b", &[document(2, 20, "two")]).expect("inserted");
            world.insert(Some(&one), "made inside", &[document(8, 80, "eight")]).expect("inserted");
            world.insert(Some(&other), "b", &[document(3, 30, "three")]).expect("inserted");
            world.insert(Some(&other), "never made", &[document(8, 80, "eight")]).expect("inserted");
            let lsn = one.commit(&mut history).expect("committed").expect("something was changed");
            assert_eq!(history.commit(), Some(Some(lsn)));
            world.catalog.store().write(lsn).expect("written");
            // No checkpoint and no close: a kill leaves the bytes that the kernel has.
            std::mem::forget(Arc::clone(&world.catalog));
            let copied = crash_copy(directory.path());
            let again = World { catalog: open(copied.path(), engine) };
            assert_eq!(
                (again.seen(None, "a"), again.seen(None, "b")),
                (vec![(1, 11)], vec![(2, 20)]),
                "{}",
                engine.name
            );
            again.assert_valid();
            assert_eq!(again.seen(None, "made inside"), [(8, 80)]);
            assert!(again.catalog.collection(&namespace("never made")).is_none());
            let histories = again.catalog.take_write_histories();
            assert_eq!(histories[&SESSION].commit(), Some(None), "the commit is known to whoever asks again");
            assert_eq!(histories[&SESSION].number(), Some(1));
            again.catalog.store().close().expect("closes");
        }
    }
}

#[test]
fn a_collection_that_is_created_inside_is_there_with_the_commit() {
    with_engines(|world| {
        let (one, other) = (world.begin(), world.begin());
        let arrays: ArrayBuf = (0..3).collect();
        let with_array = DocumentBuf::new().with("_id", 2).with("n", &arrays).with("u", "b");
        for transaction in [&one, &other] {
            let own = Some(transaction);
            world.insert(own, "c", &[document(1, 1, "a")]).expect("inserted into a new collection");
            let created = world.catalog.collection_for(&namespace("c"), &*operation(own)).expect("its own");
            let specs = [unique()];
            let refused = world.catalog.create_indexes(&created, &specs, &*operation(own));
            assert_eq!(code(refused), ErrorCode::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, "not empty");
            let (created, _) =
                world.catalog.create(&namespace("d"), CreateOptions::default(), &*operation(own)).expect("created");
            let indexes = world.catalog.create_indexes(&created, &[unique(), spec("n")], &*operation(own));
            assert_eq!(indexes.map(|indexes| (indexes.before, indexes.after)).ok(), Some((1, 3)));
            world.insert(own, "d", &[document(1, 1, "a"), with_array.clone()]).expect("inserted");
            let again = world.insert(own, "d", &[document(3, 3, "a")]);
            assert_eq!(code(again), ErrorCode::DUPLICATE_KEY, "by the index that was created inside");
            let exists = world.catalog.create(&namespace("d"), CreateOptions::default(), &*operation(own));
            assert_eq!(exists.err().map(|failure| failure.code()), Some(ErrorCode::NAMESPACE_EXISTS));
        }
        assert!(["c", "d"].iter().all(|name| world.catalog.collection(&namespace(name)).is_none()));
        commit(&one);
        assert_eq!(world.seen(None, "c"), [(1, 1)]);
        let collection = world.collection("d");
        assert_eq!((collection.count(), collection.indexes().len()), (2, 3));
        assert!(collection.validate(&*OperationContext::unlimited()).expect("readable").is_valid());
        let late = other.commit(&mut WriteHistory::default());
        assert_eq!(code(late), ErrorCode::WRITE_CONFLICT, "the names are taken");
        assert_eq!((other.state(), collection.count()), (TransactionState::Aborted, 2));
        world.insert(None, "d", &[document(4, 4, "four")]).expect("others use it");
        let aborted = world.begin();
        world.insert(Some(&aborted), "e", &[document(1, 1, "a")]).expect("inserted");
        aborted.abort();
        assert!(world.catalog.collection(&namespace("e")).is_none());
    });
}
