//! Reads of the committed state while the commit point is behind.

use crate::opened::{namespace, spec, survival};
use bunko_bson::{DocumentBuf, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Collection, Order, StateAsked};
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_operation::OperationContext;
use bunko_store::{Clock, LogOptions, Lsn, Store, StoreOptions, Survival};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Time after which a thread is taken to wait. Nothing shows that it does; too short a time only makes a test weaker.
const MOMENT: Duration = Duration::from_millis(30);

fn primary(path: &Path, engine: &Entry) -> Arc<Catalog> {
    primary_at(path, engine, StoreOptions::at_rest().clock)
}

fn primary_at(path: &Path, engine: &Entry, clock: Clock) -> Arc<Catalog> {
    let log = LogOptions { history_bytes_max: Some(1 << 30), ..LogOptions::default() };
    let options = StoreOptions { log, clock, ..StoreOptions::at_rest() };
    let table = bunko_engines::table(engine, &EngineOptions::default());
    let store = Store::open_member(path, options, table, Lsn(0)).expect("opens");
    let catalog = Catalog::open(store, Box::new(|| [7; 16])).expect("opens");
    catalog.become_primary(1).expect("begins");
    catalog.step_up().expect("begun");
    catalog
}

fn insert(catalog: &Catalog, id: i32) {
    let document = Cow::Owned(DocumentBuf::new().with("_id", id).into_bytes());
    let operation = OperationContext::unlimited();
    catalog.insert(&namespace("t"), &[document], Order::Ordered, &*operation).expect("inserted");
}

fn commit_all(catalog: &Catalog) {
    catalog.store().set_committed(catalog.store().visible_end());
}

/// Whether the document is there in the asked state, and the time of the state.
fn reads(catalog: &Catalog, collection: &Collection, asked: StateAsked, id: i32) -> (bool, Option<Timestamp>) {
    let operation = OperationContext::unlimited();
    let (at, read) = catalog.read_past(asked, &*operation).expect("readable");
    operation.join(read);
    let found = collection.record_of_id(ValueRef::Int32(id), &*operation).expect("readable");
    (found.is_some(), at)
}

fn for_each_engine(check: impl Fn(&Arc<Catalog>, &Arc<Collection>)) {
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = primary(directory.path(), engine);
        insert(&catalog, 1);
        commit_all(&catalog);
        insert(&catalog, 2);
        check(&catalog, &catalog.collection(&namespace("t")).expect("there"));
        commit_all(&catalog);
        catalog.store().close().expect("closes");
    }
}

#[test]
fn a_snapshot_read_begins_at_the_commit_point() {
    for_each_engine(|catalog, collection| {
        let (found, at) = reads(catalog, collection, StateAsked::Present, 2);
        assert!(!found, "a promise is broken: a snapshot shows what is not committed");
        assert_eq!(at, Some(catalog.store().committed_time().expect("readable").0));
        let at = at.expect("told");
        commit_all(catalog);
        let (found, later) = reads(catalog, collection, StateAsked::Present, 2);
        assert!(found && later > Some(at), "{later:?}");
        assert_eq!(reads(catalog, collection, StateAsked::At(at), 2), (false, Some(at)), "the state is kept");
    });
}

#[test]
fn a_read_at_a_time_waits_until_that_time_is_committed() {
    for_each_engine(|catalog, collection| {
        let time = catalog.store().newest_time_max();
        std::thread::scope(|scope| {
            let read = scope.spawn(|| reads(catalog, collection, StateAsked::At(time), 2));
            std::thread::sleep(MOMENT);
            assert!(!read.is_finished(), "a promise is broken: it does not wait for the record of that time");
            commit_all(catalog);
            assert_eq!(read.join().expect("no panic"), (true, Some(time)));
        });
    });
}

#[test]
fn a_majority_read_waits_for_the_last_change_of_its_collection() {
    for_each_engine(|catalog, collection| {
        let operation = OperationContext::unlimited();
        catalog.create_indexes(collection, &[spec("a")], &*operation).expect("built");
        std::thread::scope(|scope| {
            let read = scope.spawn(|| reads(catalog, collection, StateAsked::Committed, 2));
            std::thread::sleep(MOMENT);
            assert!(!read.is_finished(), "a promise is broken: the index has no keys in the committed state");
            commit_all(catalog);
            assert!(read.join().expect("no panic").0, "it sees the state of the change");
        });
        // A name that a collection has lost.
        catalog.drop_collection(&namespace("t"), &*operation).expect("dropped");
        std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let operation = OperationContext::unlimited();
                operation.join(catalog.read_past(StateAsked::Committed, &*operation).expect("readable").1);
                catalog.check_never_removed(&namespace("t"), &*operation)
            });
            std::thread::sleep(MOMENT);
            assert!(!read.is_finished(), "a promise is broken: the collection is there in the committed state");
            commit_all(catalog);
            read.join().expect("no panic").expect("it is gone");
        });
    });
}

/// On a delayed member, and where nothing has been written for long, the present state is older than the window.
#[test]
fn a_state_is_kept_for_the_window_after_it_was_the_present_one() {
    const WRITTEN_S: u64 = 1_800_000_000;
    const READ_S: u64 = WRITTEN_S + 3600;
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let now_s = Arc::new(AtomicU64::new(WRITTEN_S));
        let clock_s = Arc::clone(&now_s);
        let clock = Clock::dated(move || clock_s.load(SeqCst) * 1000);
        let catalog = primary_at(directory.path(), engine, clock);
        insert(&catalog, 1);
        commit_all(&catalog);
        let collection = catalog.collection(&namespace("t")).expect("there");
        now_s.store(READ_S, SeqCst);
        let (_, at) = reads(&catalog, &collection, StateAsked::Present, 1);
        let at = at.expect("a time");
        assert!(u64::from(at.seconds) < READ_S, "{at:?}");
        let past = catalog.past_states();
        past.forget_old(READ_S + 1);
        insert(&catalog, 2);
        commit_all(&catalog);
        assert_eq!(reads(&catalog, &collection, StateAsked::At(at), 2), (false, Some(at)), "{}", engine.name);
        past.forget_old(READ_S + u64::from(past.window_s()));
        assert_eq!(past.kept(), 1);
        past.forget_old(READ_S + u64::from(past.window_s()) + 1);
        assert_eq!(past.kept(), 0);
        catalog.store().close().expect("closes");
    }
}
