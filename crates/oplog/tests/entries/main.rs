//! The oplog of catalogs over real stores: no entry is missing or repeated, and times never change.

mod engines;
mod opened;

use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace, Order, SessionName, Target, Transaction, Verdict, WriteHistory};
use bunko_errors::ErrorCode;
use bunko_operation::OperationContext;
use bunko_oplog::{Entries, Feed, Reach};
use bunko_store::{Direction, SEGMENT_BYTES};
use opened::{Opened, at, insert_in_transaction, namespace, open_store, operations};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `n` by `_id`, according to the entries.
fn replayed(entries: &[DocumentBuf]) -> BTreeMap<i32, i32> {
    let mut state = BTreeMap::new();
    for entry in entries {
        let field = |name| entry.as_ref().get(name).expect("a field");
        let (operation, object) = (field("op").as_str().expect("text"), field("o").as_document().expect("a document"));
        let number = |name| match object.get(name) {
            Some(ValueRef::Int32(number)) => number,
            other => panic!("{other:?}"),
        };
        match operation {
            "i" => assert_eq!(state.insert(number("_id"), number("n")), None, "inserted twice"),
            "u" => assert!(state.insert(number("_id"), number("n")).is_some(), "updated, and not there"),
            "d" => assert!(state.remove(&number("_id")).is_some(), "deleted, and not there"),
            "c" if object.get("drop").is_some() => state.clear(),
            _ => {}
        }
    }
    state
}

fn contents(catalog: &Catalog) -> BTreeMap<i32, i32> {
    let Some(collection) = catalog.collection(&namespace()) else { return BTreeMap::new() };
    let mut state = BTreeMap::new();
    for id in 0..10 {
        let mut bytes = Vec::new();
        if collection.find_latest(id.into(), &mut bytes).expect("readable").is_some()
            && let Some(ValueRef::Int32(n)) = DocumentRef::trusted(&bytes).get("n")
        {
            state.insert(id, n);
        }
    }
    state
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<i32>),
    Set(i32, i32),
    Delete(i32),
    Drop,
    Wait(u64),
    TurnBack(u64),
    Checkpoint,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => proptest::collection::vec(0..10, 1..6).prop_map(Step::Insert),
        4 => (0..10, 1..100).prop_map(|(id, n)| Step::Set(id, n)),
        3 => (0..10).prop_map(Step::Delete),
        1 => Just(Step::Drop),
        1 => (1..3000_u64).prop_map(Step::Wait),
        1 => (1..3000_u64).prop_map(Step::TurnBack),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn entries_in_their_order_make_what_there_is(steps in proptest::collection::vec(step(), 1..30)) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut opened = Opened::new(directory.path(), Some(SEGMENT_BYTES));
        let mut seen: Vec<DocumentBuf> = Vec::new();
        for step in steps {
            match step {
                Step::Insert(ids) => opened.insert(&ids, 10),
                Step::Set(id, n) => opened.set(id, n),
                Step::Delete(id) => opened.delete(id),
                Step::Drop => drop(opened.catalog.drop_collection(&namespace(), &*OperationContext::unlimited()).expect("dropped")),
                Step::Wait(ms) => drop(opened.clock_ms.fetch_add(ms, Ordering::Relaxed)),
                Step::TurnBack(ms) => drop(opened.clock_ms.fetch_sub(ms, Ordering::Relaxed)),
                Step::Checkpoint => opened.store.checkpoint().expect("checkpoint"),
                Step::Restart => {
                    opened.store.close().expect("closes");
                    drop(opened);
                    opened = Opened::new(directory.path(), Some(SEGMENT_BYTES));
                }
            }
            let all = opened.all();
            prop_assert_eq!(&all[..seen.len()], &seen, "entries once seen changed");
            prop_assert_eq!(replayed(&all), contents(&opened.catalog));
            seen = all;
        }
        prop_assert!(seen.is_sorted_by(|one, next| at(one) < at(next)));
        let mut backward = opened.entries(Direction::Backward, None);
        backward.reverse();
        prop_assert_eq!(&backward, &seen);
        for entry in &seen {
            let later = |entries: Vec<DocumentBuf>| entries.into_iter().filter(|other| at(other) >= at(entry)).collect::<Vec<_>>();
            prop_assert_eq!(later(opened.entries(Direction::Forward, Some(at(entry)))), later(seen.clone()));
        }
    }
}

#[test]
fn old_entries_go_in_whole_segments_and_a_slow_reader_is_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(SEGMENT_BYTES));
    let first = at(&opened.all()[0]);
    let mut slow = Entries::open(&opened.store, Direction::Forward, None).expect("readable").expect("an oplog");
    let ids: Vec<i32> = (0..20).collect();
    for round in 0..12 {
        let ids: Vec<_> = ids.iter().map(|id| round * 20 + id).collect();
        opened.insert(&ids, 1 << 20);
        opened.clock_ms.fetch_add(1000, Ordering::Relaxed);
    }
    // Live records of the oldest segments are moved; then only the oplog holds these segments.
    opened.store.compact().expect("compacts");
    let entries = opened.all();
    assert!(at(&entries[0]) > first, "the oldest are gone");
    assert!(!operations(&entries).contains('n'), "with the start");
    let bytes = opened.store.history_span().map(|span| span.end.0 - span.start.0).expect("an oplog");
    assert!((SEGMENT_BYTES / 2..3 * SEGMENT_BYTES).contains(&bytes), "{bytes} are kept");
    let on_disk = std::fs::read_dir(directory.path().join("log")).expect("a log").count();
    assert!(on_disk < 10, "{on_disk} files");
    let lost = slow.next().expect("something").expect_err("lost");
    assert_eq!(lost.code(), ErrorCode::CAPPED_POSITION_LOST, "{lost}");
}

#[test]
fn young_entries_are_kept_beyond_the_size() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(SEGMENT_BYTES));
    opened.store.retain_history(10_000).expect("nothing to give up");
    let first = at(&opened.all()[0]);
    let write = |rounds: std::ops::Range<i32>| {
        for round in rounds {
            opened.insert(&(round * 20..round * 20 + 20).collect::<Vec<_>>(), 1 << 20);
            opened.clock_ms.fetch_add(500, Ordering::Relaxed);
        }
        opened.store.compact().expect("compacts");
    };
    write(0..12);
    assert_eq!(at(&opened.all()[0]), first, "all are of the last six seconds");
    write(12..32);
    let entries = opened.all();
    let span_seconds = at(entries.last().expect("entries")).seconds - at(&entries[0]).seconds;
    assert!(at(&entries[0]) > first, "the oldest are gone");
    assert!((9..14).contains(&span_seconds), "entries of {span_seconds} seconds are kept");
    opened.store.retain_history(0).expect("gives up");
    let bytes = opened.store.history_span().map(|span| span.end.0 - span.start.0).expect("an oplog");
    assert!(bytes < 3 * SEGMENT_BYTES, "{bytes} are kept");
}

#[test]
fn a_size_holds_whatever_later_starts_ask_for() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let size_after = |asked| {
        let opened = Opened::new(directory.path(), Some(asked));
        let found = opened.store.history_bytes_max();
        opened.store.checkpoint().expect("checkpoint");
        opened.store.close().expect("closes");
        found
    };
    let opened = Opened::new(directory.path(), Some(SEGMENT_BYTES));
    opened.store.resize_history(5 * SEGMENT_BYTES).expect("resized");
    assert_eq!(opened.store.history_bytes_max(), Some(5 * SEGMENT_BYTES));
    drop(opened);
    assert_eq!(size_after(SEGMENT_BYTES), Some(5 * SEGMENT_BYTES));
    assert_eq!(size_after(SEGMENT_BYTES), Some(5 * SEGMENT_BYTES));
    assert_eq!(size_after(2 * SEGMENT_BYTES), Some(5 * SEGMENT_BYTES));
    // A run of the server without an oplog ends the oplog.
    Opened::new(directory.path(), None).store.close().expect("closes");
    assert_eq!(size_after(2 * SEGMENT_BYTES), Some(2 * SEGMENT_BYTES));
    assert_eq!(size_after(SEGMENT_BYTES), Some(2 * SEGMENT_BYTES));
}

#[test]
fn an_oplog_begins_anew_after_a_run_without_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(4 * SEGMENT_BYTES));
    opened.insert(&[1, 2], 0);
    opened.store.close().expect("closes");
    drop(opened);
    let opened = Opened::new(directory.path(), Some(4 * SEGMENT_BYTES));
    opened.delete(1);
    assert_eq!(operations(&opened.all()), "nciind");
    opened.store.close().expect("closes");
    drop(opened);
    let opened = Opened::new(directory.path(), None);
    assert!(Entries::open(&opened.store, Direction::Forward, None).expect("readable").is_none());
    opened.delete(2);
    opened.insert(&[3], 0);
    // The store is not closed, as after a kill.
    drop(opened);
    let opened = Opened::new(directory.path(), Some(4 * SEGMENT_BYTES));
    assert_eq!(operations(&opened.all()), "n");
    opened.set(3, 1);
    assert_eq!(operations(&opened.all()), "nu");
}

#[test]
fn a_transaction_is_one_entry_and_several_for_those_who_follow() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(4 * SEGMENT_BYTES));
    opened.insert(&[1, 2], 0);
    let mut feed = Feed::from_now(&opened.store).expect("an oplog");
    let transaction = Transaction::begin(&opened.catalog, SessionName { id: [9; 16], user: [0; 32] }, 77);
    let operation = OperationContext::unlimited();
    operation.join(Arc::clone(&transaction) as _);
    let documents: Vec<_> =
        [3, 4].map(|id| Cow::Owned(DocumentBuf::new().with("_id", id).with("n", 5).into_bytes())).into();
    opened.catalog.insert(&namespace(), &documents, Order::Ordered, &*operation).expect("inserted");
    let collection = opened.catalog.collection(&namespace()).expect("there");
    for id in [3, 1] {
        let record = collection.record_of_id(id.into(), &*operation).expect("readable").expect("there");
        let mut decide = |_: DocumentRef<'_>| {
            let changed = DocumentBuf::new().with("_id", 3).with("n", 6);
            Ok(if id == 3 {
                Verdict::Modify(changed, Some(DocumentBuf::new().with("u", &DocumentBuf::new().with("n", 6))))
            } else {
                Verdict::Delete
            })
        };
        opened.catalog.change(&collection, Target::Record(record), &*operation, &mut decide).expect("changed");
    }
    assert_eq!(operations(&opened.all()), "ncii", "nothing is told before the commit");
    transaction.commit(&mut WriteHistory::default()).expect("committed");
    opened.store.flush().expect("on disk");
    let all = opened.all();
    assert_eq!(operations(&all), "nciic");
    let entry = all.last().expect("the transaction").as_ref();
    assert!(matches!(entry.get("txnNumber"), Some(ValueRef::Int64(77))) && entry.get("lsid").is_some());
    let told = entry.get("o").and_then(ValueRef::as_document).and_then(|o| o.get("applyOps"));
    let told = told.and_then(ValueRef::as_array).expect("operations");
    let apart: Vec<DocumentBuf> = std::iter::from_fn(|| feed.next(&|_| true, Reach::All).expect("readable"))
        .map(|entry| entry.document)
        .collect();
    assert_eq!((told.iter().count(), operations(&apart)), (4, "iiud".to_owned()));
    assert!(apart.iter().all(|entry| entry.as_ref().get("lsid").is_some()));
    assert!(apart.iter().all(|told| at(told) == at(all.last().expect("one"))), "all of one time");
    assert_eq!(contents(&opened.catalog), BTreeMap::from([(2, 0), (3, 6), (4, 5)]));
}

#[test]
fn a_large_transaction_is_a_chain_of_entries_and_of_one_time_for_those_who_follow() {
    const COUNT: i32 = 12;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(8 * SEGMENT_BYTES));
    opened.insert(&[1000], 0);
    let mut feed = Feed::from_now(&opened.store).expect("an oplog");
    insert_in_transaction(&opened, 0..COUNT, 4 << 20);
    opened.insert(&[1001], 0);
    opened.store.flush().expect("on disk");
    let all = opened.all();
    let chain: Vec<_> = all.iter().filter(|entry| entry.as_ref().get("txnNumber").is_some()).collect();
    assert!(chain.len() > 3 && operations(&all).ends_with("ci"), "{}", operations(&all));
    let session =
        |entry: &DocumentBuf| entry.as_ref().get("lsid").and_then(ValueRef::as_document).map(DocumentRef::to_owned);
    let mut operations_told = 0;
    let mut previous = Timestamp { seconds: 0, increment: 0 };
    for (number, entry) in chain.iter().enumerate() {
        let is_last = number + 1 == chain.len();
        let o = entry.as_ref().get("o").and_then(ValueRef::as_document).expect("an object");
        operations_told += o.get("applyOps").and_then(ValueRef::as_array).expect("operations").iter().count();
        assert_eq!(o.get("partialTxn").is_some(), !is_last);
        assert_eq!(matches!(o.get("count"), Some(ValueRef::Int64(12))), is_last, "{:?}", o.get("count"));
        let before = entry.as_ref().get("prevOpTime").and_then(ValueRef::as_document).and_then(|at| at.get("ts"));
        assert!(matches!(before, Some(ValueRef::Timestamp(at)) if at == previous), "{before:?}");
        assert_eq!(session(entry), session(chain[0]));
        assert!(at(entry) > previous && entry.as_ref().len_bytes() < 16 << 20);
        previous = at(entry);
    }
    assert_eq!(operations_told, COUNT as usize);
    let mut backward = opened.entries(Direction::Backward, None);
    backward.reverse();
    assert_eq!(backward, all);
    let followed = |feed: &mut Feed| -> Vec<_> {
        std::iter::from_fn(|| feed.next(&|_| true, Reach::All).expect("readable"))
            .filter(|entry| entry.at == previous)
            .collect()
    };
    // A feed that begins at the transaction's end gets all of it, too.
    for feed in [&mut feed, &mut Feed::from_time(&opened.store, previous).expect("readable").expect("an oplog")] {
        let events = followed(feed);
        assert_eq!(events.iter().map(|entry| entry.number).collect::<Vec<_>>(), (0..COUNT as u64).collect::<Vec<_>>());
        assert!(feed.seen() > previous);
    }
}

#[test]
fn no_collection_created_meanwhile_outlives_its_database() {
    const DROPS: usize = 200;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(SEGMENT_BYTES));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for name in ["t", "u"] {
            let (catalog, is_over) = (&opened.catalog, &is_over);
            scope.spawn(move || {
                let namespace = Namespace::new("db", name).expect("valid");
                while !is_over.load(Ordering::Relaxed) {
                    let _ = catalog.collection_or_create(&namespace, &*OperationContext::unlimited());
                }
            });
        }
        let mut dropped = 0;
        while dropped < DROPS {
            let (collections, _) =
                opened.catalog.drop_database("db", &*OperationContext::unlimited()).expect("dropped");
            dropped += usize::from(collections > 0);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    opened.store.sync_history().expect("synced");
    let mut there = BTreeSet::new();
    let mut drops = 0;
    for entry in opened.all() {
        let Some(o) = entry.as_ref().get("o").and_then(ValueRef::as_document) else { continue };
        match o.first().map(|first| (first.name, first.value.as_str().unwrap_or_default().to_owned())) {
            Some(("create", name)) => assert!(there.insert(name.clone()), "{name} is there already"),
            Some(("drop", name)) => assert!(there.remove(&name), "{name} is not there"),
            Some(("dropDatabase", _)) => {
                drops += 1;
                assert!(there.is_empty(), "{there:?} outlive their database");
            }
            _ => {}
        }
    }
    assert_eq!(drops, DROPS);
}

#[test]
fn a_collection_that_has_the_oplogs_name_keeps_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), None);
    let oplog = Namespace::new("local", "oplog.rs").expect("valid");
    opened.catalog.collection_or_create(&oplog, &*OperationContext::unlimited()).expect("created");
    opened.store.close().expect("closes");
    drop(opened);
    let store = open_store(directory.path(), Some(SEGMENT_BYTES), &Arc::default());
    let refused = Catalog::open(store, Box::new(|| [7; 16])).err().expect("refused");
    assert_eq!(refused.code(), ErrorCode::ILLEGAL_OPERATION, "{refused}");
}
