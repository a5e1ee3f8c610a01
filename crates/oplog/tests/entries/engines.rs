//! Entries of collections in engines of their choice, and of internal collections.

use crate::opened::{Opened, insert_in_transaction, operations};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{
    CreateOptions, EngineChoice, Namespace, Order, SessionName, Target, Transaction, Verdict, WriteHistory,
};
use bunko_operation::OperationContext;
use bunko_store::SEGMENT_BYTES;
use std::borrow::Cow;
use std::sync::Arc;

/// Makes a collection whose documents are lost in a restart.
fn create_in_memory(opened: &Opened, name: &str) {
    let engine = EngineChoice::checked(&opened.store, "memory", DocumentRef::EMPTY).expect("a choice");
    let create = CreateOptions { engine: Some(engine), ..CreateOptions::default() };
    let namespace = Namespace::new("memory", name).expect("valid");
    opened.catalog.create(&namespace, create, &*OperationContext::unlimited()).expect("created");
}

/// Makes entries of all kinds, including those that change no collection, and returns their operations.
fn operations_of_all_kinds(opened: &Opened) -> String {
    let before = opened.all().len();
    opened.insert(&[1, 2, 3], 0);
    opened.set(1, 7);
    opened.delete(2);
    opened.catalog.remark(DocumentBuf::new().with("msg", "said").as_ref()).expect("noted");
    insert_in_transaction(opened, 10..12, 10);
    // Its operations take more records than its documents do.
    insert_in_transaction(opened, 20..32, 4 << 20);
    opened.catalog.drop_database("db", &*OperationContext::unlimited()).expect("dropped");
    operations(&opened.all()[before..])
}

#[test]
fn entries_do_not_depend_on_the_open_engines() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(8 * SEGMENT_BYTES));
    let alone = operations_of_all_kinds(&opened);
    assert!(alone.starts_with("ciiiudn") && alone.ends_with("cc"), "{alone}: the drop of the database is the last");
    create_in_memory(&opened, "t");
    assert_eq!(operations_of_all_kinds(&opened), alone, "beside a collection in memory");
    opened.catalog.drop_database("memory", &*OperationContext::unlimited()).expect("dropped");
    assert_eq!(operations_of_all_kinds(&opened), alone, "once that is gone");
}

#[test]
fn collections_in_memory_are_told_of_and_emptied_by_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(4 * SEGMENT_BYTES));
    create_in_memory(&opened, "t");
    let namespace = Namespace::new("memory", "t").expect("valid");
    let before = opened.all().len();
    let documents: Vec<_> = [1, 2].map(|id| Cow::Owned(DocumentBuf::new().with("_id", id).into_bytes())).into();
    let insert = |operation: &OperationContext| {
        opened.catalog.insert(&namespace, &documents, Order::Ordered, operation).expect("inserted");
    };
    insert(&OperationContext::unlimited());
    let collection = opened.catalog.collection(&namespace).expect("there");
    for id in [1, 2] {
        let record = collection.record_of_id(id.into(), &*OperationContext::unlimited()).expect("readable");
        let target = Target::Record(record.expect("there"));
        let mut delete = |_: DocumentRef<'_>| Ok(Verdict::Delete);
        opened.catalog.change(&collection, target, &*OperationContext::unlimited(), &mut delete).expect("deleted");
    }
    let transaction = Transaction::begin(&opened.catalog, SessionName { id: [9; 16], user: [0; 32] }, 1);
    let operation = OperationContext::unlimited();
    operation.join(Arc::clone(&transaction) as _);
    insert(&operation);
    transaction.commit(&mut WriteHistory::default()).expect("committed");
    assert_eq!(operations(&opened.all()[before..]), "iiddc");
    assert_eq!(collection.count(), 2);
    let told = opened.all();
    drop((collection, transaction, operation));
    drop(opened);
    let opened = Opened::new(directory.path(), Some(4 * SEGMENT_BYTES));
    let collection = opened.catalog.collection(&namespace).expect("it is there again");
    assert_eq!(collection.count(), 0);
    assert!(collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
    assert_eq!(&opened.all()[..told.len()], &told, "what was told stays");
}

#[test]
fn internal_records_have_no_entries() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let opened = Opened::new(directory.path(), Some(4 * SEGMENT_BYTES));
    let before = opened.all().len();
    let document = [Cow::Owned(DocumentBuf::new().with("_id", 1).into_bytes())];
    for (database, name) in [("local", "t"), ("db", "system.profile"), ("db", "system.profiles")] {
        let namespace = Namespace::new(database, name).expect("valid");
        opened
            .catalog
            .insert(&namespace, &document, Order::Ordered, &*OperationContext::unlimited())
            .expect("inserted");
        opened.catalog.drop_collection(&namespace, &*OperationContext::unlimited()).expect("dropped");
    }
    let told = &opened.all()[before..];
    assert_eq!(operations(told), "cic", "of the last alone");
    assert!(told.iter().all(|entry| entry.as_ref().get("ns").and_then(ValueRef::as_str) != Some("db.system.profile")));
}
