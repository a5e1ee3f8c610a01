//! Records of retryable writes, after checkpoints, kills and restarts.

use crate::opened::{namespace, open, survival};
use bunko_bson::DocumentBuf;
use bunko_catalog::{Catalog, NOBODY, Order, Outcome, RetryableWrite, SessionName, StatementNumbers, WriteHistory};
use bunko_engines::ENGINES;
use bunko_operation::OperationContext;
use bunko_store::Survival;
use bunko_testkit::directory::crash_copy;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

const ONE: SessionName = SessionName { id: [1; 16], user: NOBODY };
const OTHER: SessionName = SessionName { id: [1; 16], user: [7; 32] };

/// Inserts documents as a session's write under this number, with statements from `first` on. Returns the session's
/// history.
fn insert(
    catalog: &Arc<Catalog>,
    (session, history): (SessionName, WriteHistory),
    number: i64,
    (first, count): (i32, i32),
) -> WriteHistory {
    let write = Arc::new(RetryableWrite::new(session, history, number));
    let operation = OperationContext::unlimited();
    operation.join(Arc::clone(&write) as _);
    write.begin_inserts(StatementNumbers::From(first));
    let id = |statement: i32| number as i32 * 1000 + statement + if session == ONE { 0 } else { 500 };
    let documents: Vec<_> = (first..first + count).map(|one| DocumentBuf::new().with("_id", id(one))).collect();
    let documents: Vec<_> = documents.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
    let inserted = catalog.insert(&namespace("c"), &documents, Order::Ordered, &*operation).expect("inserted");
    assert_eq!(inserted.count, documents.len());
    write.end().0
}

/// The statements that are recorded as done, each with the usual outcome.
fn done(catalog: &Catalog, session: SessionName, history: WriteHistory, number: i64) -> (Vec<i32>, WriteHistory) {
    let write = RetryableWrite::new(session, history, number);
    let is_done = |statement: &i32| match write.outcome_of(catalog, *statement).expect("readable") {
        Some((Outcome::One, _)) => true,
        Some(other) => panic!("{other:?}"),
        None => false,
    };
    ((0..10).filter(is_done).collect(), write.end().0)
}

fn killed(catalog: &Arc<Catalog>, directory: &Path) -> tempfile::TempDir {
    catalog.store().write(catalog.store().snapshot().lsn()).expect("written");
    // The store is not closed: a kill leaves the bytes that the kernel has.
    std::mem::forget(Arc::clone(catalog));
    crash_copy(directory)
}

/// Number of records about statements, besides remembered values.
fn records(catalog: &Catalog) -> u64 {
    catalog.store().entries(bunko_catalog::WRITE_HISTORIES)
}

#[test]
fn statements_are_known_after_kills_and_checkpoints() {
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        for checkpoints in [[false, false], [true, false], [false, true], [true, true]] {
            let directory = tempfile::tempdir().expect("temporary directory");
            let catalog = open(directory.path(), engine);
            let one = insert(&catalog, (ONE, WriteHistory::default()), 1, (0, 3));
            let other = insert(&catalog, (OTHER, WriteHistory::default()), 9, (0, 1));
            if checkpoints[0] {
                catalog.store().checkpoint().expect("made");
            }
            // The second batch of a number is reported by a record.
            let one = insert(&catalog, (ONE, one), 2, (0, 2));
            let one = insert(&catalog, (ONE, one), 2, (5, 2));
            if checkpoints[1] {
                catalog.store().checkpoint().expect("made");
            }
            assert_eq!((done(&catalog, ONE, one, 2).0, records(&catalog)), (vec![0, 1, 5, 6], 1));
            drop(other);
            let copied = killed(&catalog, directory.path());
            let again = open(copied.path(), engine);
            let mut histories = again.take_write_histories();
            assert_eq!(histories.len(), 2);
            let (statements, one) = done(&again, ONE, histories.remove(&ONE).expect("known"), 2);
            assert_eq!(statements, [0, 1, 5, 6], "{}, checkpoints {checkpoints:?}", engine.name);
            let (statements, other) = done(&again, OTHER, histories.remove(&OTHER).expect("known"), 9);
            assert_eq!(statements, [0]);
            // The next number replaces the record.
            let one = insert(&again, (ONE, one), 3, (0, 1));
            assert_eq!((done(&again, ONE, one, 3).0, records(&again)), (vec![0], 0));
            again.forget_write_histories([(OTHER, other)]).expect("forgotten");
            again.store().close().expect("closes");
            drop(again);
            let again = open(copied.path(), engine);
            let mut histories = again.take_write_histories();
            assert_eq!(histories.len(), 1);
            assert_eq!(done(&again, ONE, histories.remove(&ONE).expect("known"), 3).0, [0]);
            again.store().close().expect("closes");
        }
    }
}

#[test]
fn an_ended_session_takes_nothing_from_its_successor() {
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = open(directory.path(), engine);
        let over = insert(&catalog, (ONE, WriteHistory::default()), 1, (0, 1));
        // The session begins anew, under the same number, before its predecessor's values are forgotten.
        let next = insert(&catalog, (ONE, WriteHistory::default()), 1, (1, 1));
        catalog.forget_write_histories([(ONE, over)]).expect("forgotten");
        drop(next);
        let copied = killed(&catalog, directory.path());
        let again = open(copied.path(), engine);
        let history = again.take_write_histories().remove(&ONE).expect("known");
        assert_eq!(done(&again, ONE, history, 1).0, [1]);
        again.store().close().expect("closes");
    }
}
