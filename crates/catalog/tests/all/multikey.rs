//! An index becomes multikey while other writers run.

use crate::opened::{namespace, open, spec, survival};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_catalog::{Catalog, CreateOptions, Order};
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_operation::OperationContext;
use bunko_store::{Clock, Store, StoreOptions, Survival};
use bunko_testkit::directory::crash_copy;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Longest time that the first writer is held.
const HELD_MAX: Duration = Duration::from_millis(300);

fn insert_array(catalog: &Catalog, id: i32) {
    let numbers: ArrayBuf = [id, id + 1].into_iter().collect();
    let document = DocumentBuf::new().with("_id", id).with("x", &numbers);
    let documents = [Cow::Borrowed(document.as_ref().as_bytes())];
    let inserted =
        catalog.insert(&namespace("a"), &documents, Order::Ordered, &*OperationContext::unlimited()).expect("inserted");
    catalog.store().write(inserted.lsn.expect("a record")).expect("written");
}

#[test]
fn no_array_key_is_logged_before_the_index_is_known_to_be_multikey() {
    ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable).for_each(two_writers_and_a_kill);
}

/// The first writer is held when its first record goes into the log. Meanwhile the second one writes as much as it can;
/// then the process is killed.
fn two_writers_and_a_kill(engine: &'static Entry) {
    let directory = tempfile::tempdir().expect("a directory");
    let is_armed = Arc::new(AtomicBool::new(false));
    let (at_log, is_at_log) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = parking_lot::Mutex::new(may_go_on);
    let armed = Arc::clone(&is_armed);
    let options = StoreOptions {
        clock: Clock::dated(move || {
            if armed.swap(false, Ordering::SeqCst) {
                at_log.send(()).expect("the test waits");
                let _ = may_go_on.lock().recv_timeout(HELD_MAX);
            }
            1
        }),
        ..StoreOptions::at_rest()
    };
    let store = Store::open(directory.path(), options, bunko_engines::table(engine, &EngineOptions::default()));
    let catalog = Catalog::open(store.expect("opens"), Box::new(|| [7; 16])).expect("opens");
    let (collection, _) =
        catalog.create(&namespace("a"), CreateOptions::default(), &*OperationContext::unlimited()).expect("created");
    catalog.create_indexes(&collection, &[spec("x")], &*OperationContext::unlimited()).expect("built");
    is_armed.store(true, Ordering::SeqCst);
    let killed = std::thread::scope(|scope| {
        scope.spawn(|| insert_array(&catalog, 1));
        is_at_log.recv().expect("the first writer is there");
        insert_array(&catalog, 2);
        let killed = crash_copy(directory.path());
        let _ = go_on.send(());
        killed
    });
    let found = open(killed.path(), engine);
    let collection = found.collection(&namespace("a")).expect("created");
    assert!(collection.index("x").expect("built").is_multikey_at(0), "{}", engine.name);
    assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
}
