//! Every way to write documents, against everything that may stop a write or note it.

use super::world::{World, code, document, with_engines};
use crate::opened::namespace;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{
    FoundRecords, Inserted, NOBODY, Order, RetryableWrite, SessionName, StatementNumbers, Target, Verdict, WriteHistory,
};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_store::{Lsn, RecordId};
use std::borrow::Cow;
use std::sync::Arc;

/// A way to write. Each one changes document 1 of collection `a`, or puts the key `taken` of the unique index.
struct Writer {
    name: &'static str,
    write: fn(&World, &OperationContext) -> Result<Option<Lsn>>,
}

const WRITERS: &[Writer] = &[
    Writer { name: "insert", write: |world, operation| insert(world, &[document(5, 5, "taken")], operation) },
    Writer {
        name: "insert of several",
        write: |world, operation| insert(world, &[document(5, 5, "five"), document(6, 6, "taken")], operation),
    },
    Writer {
        name: "bulk insert",
        write: |world, operation| {
            let large = document(5, 5, "taken").with("large", "x".repeat(2 << 20).as_str());
            let documents = [Cow::Borrowed(large.as_ref().as_bytes())];
            lsn_of(world.catalog.insert_bulk(&namespace("a"), &documents, Order::Ordered, operation)?)
        },
    },
    Writer {
        name: "replacement",
        write: |world, operation| change(world, (2, By::Id), operation, |_| Verdict::Replace(document(2, 20, "taken"))),
    },
    Writer {
        name: "replacement by record",
        write: |world, operation| {
            change(world, (1, By::Record), operation, |_| Verdict::Replace(document(1, 9, "one")))
        },
    },
    Writer {
        name: "replacement of a version",
        write: |world, operation| {
            change(world, (1, By::Version), operation, |_| Verdict::Derive(document(1, 9, "one")))
        },
    },
    Writer { name: "delete", write: |world, operation| change(world, (1, By::Id), operation, |_| Verdict::Delete) },
    Writer { name: "changes of several", write: change_both },
];

enum By {
    Id,
    Record,
    Version,
}

fn lsn_of(mut inserted: Inserted) -> Result<Option<Lsn>> {
    inserted.failures.pop().map_or(Ok(inserted.lsn), |(_, failure)| Err(failure))
}

fn insert(world: &World, documents: &[DocumentBuf], operation: &OperationContext) -> Result<Option<Lsn>> {
    let documents: Vec<_> = documents.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
    lsn_of(world.catalog.insert(&namespace("a"), &documents, Order::Unordered, operation)?)
}

fn record(world: &World, id: i32) -> RecordId {
    let found = world.collection("a").record_of_id(ValueRef::Int32(id), &*OperationContext::unlimited());
    found.expect("readable").expect("there")
}

fn change(
    world: &World,
    (id, by): (i32, By),
    operation: &OperationContext,
    verdict: fn(DocumentRef<'_>) -> Verdict,
) -> Result<Option<Lsn>> {
    let (collection, record, mut version) = (world.collection("a"), record(world, id), Vec::new());
    let location = world.catalog.store().latest().record(collection.records(), record, &mut version);
    let target = match by {
        By::Id => Target::Id(record, ValueRef::Int32(id)),
        By::Record => Target::Record(record),
        By::Version => Target::Found(record, location.expect("readable").expect("there"), &version),
    };
    world.catalog.change(&collection, target, operation, &mut |document| Ok(verdict(document)))
}

/// Changes both documents, together if that is possible and else one after the other, as searches do.
fn change_both(world: &World, operation: &OperationContext) -> Result<Option<Lsn>> {
    let (collection, mut found) = (world.collection("a"), FoundRecords::default());
    for id in [2, 1] {
        found.push(record(world, id), &[]);
    }
    let verdict = |document: DocumentRef<'_>| {
        let next = document.iter().fold(DocumentBuf::new(), |next, field| match field.name {
            "n" => next.with("n", 9),
            name => next.with(name, field.value),
        });
        Ok(Verdict::Replace(next))
    };
    let mut decide = |_, document: DocumentRef<'_>| verdict(document);
    let together = world.catalog.change_several(&collection, (&found, 0), operation, &mut decide)?;
    let mut lsn = together.failure.map_or(Ok(together.lsn), Err)?;
    for number in together.count..found.len() {
        let target = Target::Record(found.get(number).0);
        lsn = world.catalog.change(&collection, target, operation, &mut |document| verdict(document))?.or(lsn);
    }
    Ok(lsn)
}

/// An operation that may not wait.
fn impatient() -> Arc<OperationContext> {
    struct Killed;
    impl Interruption for Killed {
        fn reason(&self) -> Option<Failure> {
            Some(Failure::new(ErrorCode::INTERRUPTED, "killed"))
        }
    }
    OperationContext::new(Arc::new(Killed), MemoryLimits::none())
}

/// Calls `test` with each writer, each in a new world of each engine.
fn with_writers(test: impl Fn(&Writer, &World)) {
    for writer in WRITERS {
        with_engines(|world| test(writer, world));
    }
}

#[test]
fn every_writer_waits_for_a_transaction_that_owns_its_record_or_key() {
    with_writers(|writer, world| {
        let transaction = world.begin();
        world.set(Some(&transaction), "a", 1, 11, "taken").expect("changed");
        let conflicts = world.catalog.write_conflicts();
        assert_eq!(code((writer.write)(world, &impatient())), ErrorCode::INTERRUPTED, "{}", writer.name);
        assert_eq!(world.catalog.write_conflicts(), conflicts + 1, "{} waited", writer.name);
        transaction.abort();
        assert!((writer.write)(world, &impatient()).expect(writer.name).is_some(), "{}", writer.name);
    });
}

#[test]
fn every_writer_is_refused_while_writes_of_users_are_blocked() {
    with_writers(|writer, world| {
        let blocked = OperationContext::unlimited();
        blocked.keep_from_writing();
        let before = world.catalog.store().snapshot().lsn();
        assert_eq!(code((writer.write)(world, &blocked)), ErrorCode::USER_WRITES_BLOCKED, "{}", writer.name);
        assert_eq!(world.catalog.store().snapshot().lsn(), before, "{} wrote nothing", writer.name);
    });
}

/// A retryable write, and an operation that belongs to it.
fn retryable() -> (Arc<RetryableWrite>, Arc<OperationContext>) {
    let session = SessionName { id: [3; 16], user: NOBODY };
    let write = Arc::new(RetryableWrite::new(session, WriteHistory::default(), 1));
    let operation = OperationContext::unlimited();
    operation.join(Arc::clone(&write) as _);
    (write, operation)
}

fn is_done(world: &World, write: &RetryableWrite, statement: i32) -> bool {
    write.outcome_of(&world.catalog, statement).expect("readable").is_some()
}

#[test]
fn every_writer_records_the_statement_of_a_retryable_write() {
    with_writers(|writer, world| {
        let (write, operation) = retryable();
        let statements = if writer.name.contains("insert") {
            write.begin_inserts(StatementNumbers::From(4));
            4
        } else {
            write.begin(7);
            7
        };
        assert!((writer.write)(world, &operation).expect(writer.name).is_some());
        assert!(is_done(world, &write, statements), "{}", writer.name);
    });
}

#[test]
fn documents_that_are_refused_are_not_recorded_as_done() {
    with_engines(|world| {
        let (write, operation) = retryable();
        write.begin_inserts(StatementNumbers::From(0));
        let documents = [3, 1, 4, 2, 5].map(|id| document(id, id, &format!("number {id}")));
        let refused = insert(world, &documents, &operation);
        assert_eq!(code(refused), ErrorCode::DUPLICATE_KEY);
        let done: Vec<i32> = (0..5).filter(|statement| is_done(world, &write, *statement)).collect();
        assert_eq!(done, [0, 2, 4]);
    });
}
