//! Two collections that transactions work on, and checks of their content.

use crate::opened::{namespace, open, spec};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{
    Catalog, Collection, IndexSpec, Inserted, Order, SessionName, Target, Transaction, Verdict, WriteHistory,
};
use bunko_engines::{ENGINES, Entry};
use bunko_errors::{ErrorCode, Result};
use bunko_operation::OperationContext;
use bunko_store::{Direction, KeyRange, RecordRange, View};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

pub const SESSION: SessionName = SessionName { id: [1; 16], user: [0; 32] };

/// A catalog with collections `a` and `b`, each with an index on `n` and a unique one on `u`. Collection `a` has two
/// documents.
pub struct World {
    pub catalog: Arc<Catalog>,
}

impl World {
    pub fn new(path: &Path, engine: &Entry) -> Self {
        let world = Self { catalog: open(path, engine) };
        for name in ["a", "b"] {
            world.insert(None, name, &[document(0, 0, "none")]).expect("inserted");
            world
                .catalog
                .create_indexes(&world.collection(name), &[spec("n"), unique()], &*operation(None))
                .expect("built");
            world.delete(None, name, 0).expect("deleted");
        }
        world.insert(None, "a", &[document(1, 10, "one"), document(2, 20, "two")]).expect("inserted");
        world
    }

    pub fn begin(&self) -> Arc<Transaction> {
        Transaction::begin(&self.catalog, SESSION, 1)
    }

    pub fn collection(&self, name: &str) -> Arc<Collection> {
        self.catalog.collection(&namespace(name)).expect("there")
    }

    pub fn insert(&self, unit: Unit<'_>, name: &str, documents: &[DocumentBuf]) -> Result<Inserted> {
        let documents: Vec<_> = documents.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
        let mut inserted = self.catalog.insert(&namespace(name), &documents, Order::Ordered, &*operation(unit))?;
        match inserted.failures.pop() {
            Some((_, failure)) => Err(failure),
            None => inserted.stopped_by.take().map_or(Ok(inserted), Err),
        }
    }

    /// Changes a document. Returns whether there was one.
    pub fn change(&self, unit: Unit<'_>, name: &str, id: i32, change: impl Fn(i32) -> Verdict) -> Result<bool> {
        let (collection, operation) = (self.collection(name), operation(unit));
        let id = ValueRef::Int32(id);
        let Some(record) = collection.record_of_id(id, &*operation)? else { return Ok(false) };
        let lsn = self
            .catalog
            .change(&collection, Target::Id(record, id), &*operation, &mut |document| Ok(change(number(document))))?;
        Ok(lsn.is_some())
    }

    pub fn set(&self, unit: Unit<'_>, name: &str, id: i32, n: i32, u: &str) -> Result<bool> {
        self.change(unit, name, id, |_| Verdict::Replace(document(id, n, u)))
    }

    pub fn delete(&self, unit: Unit<'_>, name: &str, id: i32) -> Result<bool> {
        self.change(unit, name, id, |_| Verdict::Delete)
    }

    /// `_id` and `n` of all documents as found by a scan, and checked to be equal by every index and in both
    /// directions.
    pub fn seen(&self, unit: Unit<'_>, name: &str) -> Vec<(i32, i32)> {
        let (collection, operation) = (self.collection(name), operation(unit));
        let view = collection.snapshot_for(&*operation).expect("readable");
        let both = [Direction::Forward, Direction::Backward];
        let scans = both.map(|direction| {
            let mut cursor = view.records(collection.records(), RecordRange::ALL, direction);
            let mut found = Vec::new();
            while let Some((_, _, bytes)) = cursor.next().expect("readable") {
                found.push(pair(bytes));
            }
            found
        });
        let [forward, mut backward] = scans;
        backward.reverse();
        assert_eq!(forward, backward);
        let mut sorted = forward.clone();
        sorted.sort_unstable();
        for (index, direction) in collection.indexes().iter().flat_map(|index| both.map(|way| (index, way))) {
            let mut cursor = view.keys(index.keyspace, KeyRange::ALL, direction);
            let mut found = Vec::new();
            let mut bytes = Vec::new();
            while let Some((_, record)) = cursor.next().expect("readable") {
                view.record(collection.records(), record, &mut bytes)
                    .expect("readable")
                    .expect("a key leads somewhere");
                found.push(pair(&bytes));
            }
            found.sort_unstable();
            assert_eq!(found, sorted, "by {} {direction:?}", index.name);
        }
        for (id, n) in &forward {
            let mut bytes = Vec::new();
            collection.find_id(ValueRef::Int32(*id), &*operation, &mut bytes).expect("readable").expect("found");
            assert_eq!(pair(&bytes), (*id, *n));
        }
        sorted
    }

    /// Checks that indexes and counts agree with the documents.
    pub fn assert_valid(&self) {
        for name in ["a", "b"] {
            let collection = self.collection(name);
            let validation = collection.validate(&*OperationContext::unlimited()).expect("readable");
            assert!(validation.is_valid(), "{name}: {validation:?}");
            assert_eq!(collection.count(), self.seen(None, name).len() as u64);
        }
    }
}

/// The transaction of a statement, if it belongs to one.
pub type Unit<'t> = Option<&'t Arc<Transaction>>;

pub fn operation(unit: Unit<'_>) -> Arc<OperationContext> {
    let operation = OperationContext::unlimited();
    if let Some(transaction) = unit {
        operation.join(Arc::clone(transaction) as _);
    }
    operation
}

pub fn document(id: i32, n: i32, u: &str) -> DocumentBuf {
    DocumentBuf::new().with("_id", id).with("n", n).with("u", u)
}

fn number(document: DocumentRef<'_>) -> i32 {
    match document.get("n") {
        Some(ValueRef::Int32(n)) => n,
        _ => panic!("every document has a number"),
    }
}

pub fn pair(bytes: &[u8]) -> (i32, i32) {
    let document = DocumentRef::trusted(bytes);
    let Some(ValueRef::Int32(id)) = document.get("_id") else { panic!("every document has an _id") };
    (id, number(document))
}

pub fn unique() -> IndexSpec {
    let key = DocumentBuf::new().with("u", 1_i32);
    let spec = DocumentBuf::new().with("key", &key).with("name", "u").with("unique", true);
    IndexSpec::parse(spec.as_ref()).expect("valid")
}

pub fn code<T>(outcome: Result<T>) -> ErrorCode {
    outcome.err().expect("refused").code()
}

pub fn commit(transaction: &Transaction) {
    transaction.commit(&mut WriteHistory::default()).expect("committed");
}

pub fn with_engines(test: impl Fn(&World)) {
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let world = World::new(directory.path(), engine);
        test(&world);
        world.assert_valid();
        world.catalog.store().close().expect("closes");
    }
}
