//! The files in which a rollback keeps the documents that it takes back.

use super::{Member, end};
use crate::opened::survival;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Namespace, Order, Target, Truncated, Verdict};
use bunko_engines::ENGINES;
use bunko_operation::OperationContext;
use bunko_store::{Lsn, Survival};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

fn name(collection: &str) -> Namespace {
    Namespace::new("db", collection).expect("valid")
}

fn document(id: i32, number: i32) -> DocumentBuf {
    DocumentBuf::new().with("_id", id).with("n", number)
}

fn insert(catalog: &Arc<Catalog>, collection: &str, id: i32) {
    let document = Cow::Owned(document(id, 0).into_bytes());
    let inserted = catalog.insert(&name(collection), &[document], Order::Ordered, &*OperationContext::unlimited());
    inserted.expect("inserted");
}

fn change(catalog: &Arc<Catalog>, collection: &str, id: i32, verdict: impl Fn() -> Verdict) {
    let operation = OperationContext::unlimited();
    let collection = catalog.collection(&name(collection)).expect("there");
    let record = collection.record_of_id(ValueRef::Int32(id), &*operation).expect("readable").expect("there");
    let target = Target::Id(record, ValueRef::Int32(id));
    catalog.change(&collection, target, &*operation, &mut |_| Ok(verdict())).expect("changed");
}

/// The documents in all files below a directory, as text, in order.
fn kept(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(kept(&path));
            continue;
        }
        assert!(
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("removed.")),
            "{}",
            path.display()
        );
        let bytes = std::fs::read(&path).expect("readable");
        let mut rest = bytes.as_slice();
        while let Some(length) = rest.first_chunk() {
            let (document, behind) = rest.split_at(u32::from_le_bytes(*length) as usize);
            found.push(format!("{:?}", DocumentRef::parse(document).expect("a document")));
            rest = behind;
        }
    }
    found.sort();
    found
}

#[test]
fn the_last_versions_of_documents_that_are_taken_back_are_kept() {
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        let member = Member::new(engine);
        member.become_primary();
        let catalog = &member.catalog;
        (1..=4).for_each(|id| insert(catalog, "a", id));
        insert(catalog, "b", 1);
        let common = member.store().last_position();
        member.store().hold_committed();
        insert(catalog, "a", 5);
        insert(catalog, "new", 1);
        insert(catalog, "a", 6);
        for number in 1..3 {
            change(catalog, "a", 1, || Verdict::Replace(document(1, number)));
        }
        change(catalog, "a", 2, || Verdict::Delete);
        change(catalog, "a", 6, || Verdict::Delete);
        change(catalog, "b", 1, || Verdict::Replace(document(1, 7)));
        member.step_down();
        assert_eq!(catalog.truncate_log(common).expect("truncated"), Truncated::Reopen);
        let expected = [document(1, 0), document(1, 2), document(1, 7), document(5, 0)];
        let mut expected = expected.map(|document| format!("{:?}", document.as_ref()));
        expected.sort();
        assert_eq!(kept(&member.directory.path().join("rollback")), expected, "a promise is broken: {}", engine.name);
        let reopened = Member::open(member.files(), engine, Lsn(common.end));
        assert_eq!(end(reopened.store()), Lsn(common.end));
        let (a, operation) = (reopened.catalog.collection(&name("a")).expect("there"), OperationContext::unlimited());
        let mut found = Vec::new();
        for id in 1..=6 {
            if a.find_id(ValueRef::Int32(id), &*operation, &mut found).expect("readable").is_some() {
                assert_eq!(found, document(id, 0).into_bytes(), "the version before is back");
            } else {
                assert!(id > 4, "a promise is broken: the document {id} was committed");
            }
        }
        assert!(reopened.catalog.collection(&name("new")).is_none());
    }
}
