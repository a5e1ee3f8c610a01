//! An open store with an oplog, and the operations of the tests on it.

use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace, Order, SessionName, Target, Transaction, Verdict, WriteHistory};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_operation::OperationContext;
use bunko_oplog::{Entries, EntryCount};
use bunko_store::{Clock, Direction, LogOptions, Store, StoreOptions};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const NOW_MS: u64 = 1_767_225_600_500;

/// An open data directory of a server.
pub struct Opened {
    pub store: Arc<Store>,
    pub catalog: Arc<Catalog>,
    pub clock_ms: Arc<AtomicU64>,
    pub count: EntryCount,
}

pub fn open_store(path: &Path, history_bytes_max: Option<u64>, clock_ms: &Arc<AtomicU64>) -> Arc<Store> {
    let clock = Arc::clone(clock_ms);
    let options = StoreOptions {
        log: LogOptions { history_bytes_max, ..LogOptions::default() },
        clock: Clock::dated(move || clock.load(Ordering::Relaxed)),
        ..StoreOptions::at_rest()
    };
    let table = bunko_engines::table(&ENGINES[0], &EngineOptions::default());
    Store::open(path, options, table).expect("the store opens")
}

impl Opened {
    pub fn new(path: &Path, history_bytes_max: Option<u64>) -> Self {
        let clock_ms = Arc::new(AtomicU64::new(NOW_MS));
        let store = open_store(path, history_bytes_max, &clock_ms);
        let catalog = Catalog::open(Arc::clone(&store), Box::new(|| [7; 16])).expect("the catalog opens");
        Self { store, catalog, clock_ms, count: EntryCount::default() }
    }

    pub fn insert(&self, ids: &[i32], padding_bytes: usize) {
        let pad = "x".repeat(padding_bytes);
        let document = |id: &i32| DocumentBuf::new().with("_id", *id).with("n", 0).with("pad", pad.as_str());
        let documents: Vec<_> = ids.iter().map(|id| Cow::Owned(document(id).into_bytes())).collect();
        let inserted = self
            .catalog
            .insert(&namespace(), &documents, Order::Unordered, &*OperationContext::unlimited())
            .expect("inserted");
        if let Some(lsn) = inserted.lsn {
            self.store.write(lsn).expect("written");
        }
    }

    pub fn change(&self, id: i32, verdict: impl Fn(DocumentRef<'_>) -> Verdict) {
        let Some(collection) = self.catalog.collection(&namespace()) else { return };
        let Some(record) = collection.record_of_id(id.into(), &*OperationContext::unlimited()).expect("readable")
        else {
            return;
        };
        let mut decide = |document: DocumentRef<'_>| Ok(verdict(document));
        self.catalog
            .change(&collection, Target::Record(record), &*OperationContext::unlimited(), &mut decide)
            .expect("changed");
    }

    pub fn set(&self, id: i32, n: i32) {
        self.change(id, |_| Verdict::Replace(DocumentBuf::new().with("_id", id).with("n", n)));
    }

    pub fn delete(&self, id: i32) {
        self.change(id, |_| Verdict::Delete);
    }

    pub fn entries(&self, direction: Direction, from: Option<Timestamp>) -> Vec<DocumentBuf> {
        let entries = Entries::open(&self.store, direction, from).expect("readable").expect("an oplog");
        entries.map(|entry| entry.expect("readable")).collect()
    }

    /// All entries. Checks that each way of reading gives the same ones, and that the count agrees.
    pub fn all(&self) -> Vec<DocumentBuf> {
        let all = self.entries(Direction::Forward, None);
        self.store.sync_history().expect("on disk");
        let beginning = Timestamp { seconds: 0, increment: 0 };
        let followed = Entries::follow(&self.store, beginning).expect("readable").expect("an oplog");
        let followed: Vec<_> = followed.map(|entry| entry.expect("readable")).collect();
        assert!(followed == all, "{} are followed, and {} found", operations(&followed), operations(&all));
        let count = |count: &EntryCount| count.count(&self.store, &mut || Ok(())).expect("counted");
        assert_eq!(count(&self.count), all.len() as u64, "beside what was known before");
        assert_eq!(count(&EntryCount::default()), all.len() as u64);
        all
    }
}

pub fn namespace() -> Namespace {
    Namespace::new("db", "t").expect("valid")
}

pub fn at(entry: &DocumentBuf) -> Timestamp {
    match entry.as_ref().get("ts") {
        Some(ValueRef::Timestamp(at)) => at,
        other => panic!("{other:?}"),
    }
}

pub fn operations(entries: &[DocumentBuf]) -> String {
    entries.iter().map(|entry| entry.as_ref().get("op").and_then(ValueRef::as_str).expect("an operation")).collect()
}

/// Inserts documents of this size in one transaction.
pub fn insert_in_transaction(opened: &Opened, ids: std::ops::Range<i32>, bytes: usize) {
    let transaction = Transaction::begin(&opened.catalog, SessionName { id: [9; 16], user: [0; 32] }, ids.start.into());
    let operation = OperationContext::unlimited();
    operation.join(Arc::clone(&transaction) as _);
    let text = "x".repeat(bytes);
    let documents: Vec<_> = ids
        .map(|id| DocumentBuf::new().with("_id", id).with("n", id).with("large", text.as_str()))
        .map(|document| Cow::Owned(document.into_bytes()))
        .collect();
    opened.catalog.insert(&namespace(), &documents, Order::Ordered, &*operation).expect("inserted");
    transaction.commit(&mut WriteHistory::default()).expect("committed");
}
