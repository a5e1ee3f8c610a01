//! Changes of collections and indexes, and their state after a restart.

use crate::opened::{namespace, open, spec, survival};
use bunko_bson::{ArrayRef, DocumentBuf};
use bunko_catalog::{Catalog, CreateOptions, Order, RenameTarget, ViewDefinition};
use bunko_engines::{ENGINES, Entry};
use bunko_errors::ErrorCode;
use bunko_operation::OperationContext;
use bunko_store::Survival;
use std::borrow::Cow;

fn names(catalog: &Catalog) -> Vec<String> {
    catalog.collections("db").iter().map(|collection| collection.namespace().collection().to_owned()).collect()
}

fn durable_engines() -> impl Iterator<Item = &'static Entry> {
    ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable)
}

#[test]
fn a_dropped_collection_does_not_come_back_with_an_index() {
    durable_engines().for_each(drop_beside_an_index_build);
}

fn drop_beside_an_index_build(engine: &Entry) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let catalog = open(directory.path(), engine);
    let (collection, _) =
        catalog.create(&namespace("a"), CreateOptions::default(), &*OperationContext::unlimited()).expect("created");
    catalog.create_indexes(&collection, &[spec("x")], &*OperationContext::unlimited()).expect("built");
    catalog.drop_collection(&namespace("a"), &*OperationContext::unlimited()).expect("dropped");
    // An operation that looked the collection up before the drop continues with it.
    let failure =
        catalog.create_indexes(&collection, &[spec("y")], &*OperationContext::unlimited()).expect_err("it is gone");
    assert_eq!(failure.code(), ErrorCode::NAMESPACE_NOT_FOUND);
    let failure = catalog.drop_indexes(&collection, &["x"], &*OperationContext::unlimited()).expect_err("it is gone");
    assert_eq!(failure.code(), ErrorCode::NAMESPACE_NOT_FOUND);
    catalog.store().close().expect("closed");
    drop((collection, catalog));
    assert_eq!(names(&open(directory.path(), engine)), [] as [&str; 0]);
}

#[test]
fn a_catalog_knows_whether_it_may_have_views() {
    durable_engines().for_each(views_and_restart);
}

fn views_and_restart(engine: &Entry) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let catalog = open(directory.path(), engine);
    catalog.create(&namespace("a"), CreateOptions::default(), &*OperationContext::unlimited()).expect("created");
    assert!(!catalog.may_have_views());
    let view = ViewDefinition::new(&namespace("v"), "a", ArrayRef::EMPTY, None);
    catalog.create_view(&namespace("v"), &view, &*OperationContext::unlimited()).expect("created");
    assert!(catalog.may_have_views());
    catalog.store().close().expect("closed");
    drop(catalog);
    assert!(open(directory.path(), engine).may_have_views());
}

#[test]
fn names_and_indexes_survive_a_restart() {
    durable_engines().for_each(restart);
}

fn restart(engine: &Entry) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let catalog = open(directory.path(), engine);
    let odd = ["odd%name", "with space", "with.dots.in", "日本語"];
    for name in odd {
        catalog.create(&namespace(name), CreateOptions::default(), &*OperationContext::unlimited()).expect("created");
    }
    let (collection, _) =
        catalog.create(&namespace("a"), CreateOptions::default(), &*OperationContext::unlimited()).expect("created");
    let document = DocumentBuf::new().with("_id", 1_i32).with("x", 1_i32);
    let documents = [Cow::Borrowed(document.as_ref().as_bytes())];
    assert_eq!(
        catalog
            .insert(&namespace("a"), &documents, Order::Ordered, &*OperationContext::unlimited())
            .expect("inserted")
            .count,
        1
    );
    catalog
        .create_indexes(&collection, &[spec("x"), spec("y"), spec("z")], &*OperationContext::unlimited())
        .expect("built");
    let failure =
        catalog.drop_indexes(&collection, &["y", "nope"], &*OperationContext::unlimited()).expect_err("one is missing");
    assert_eq!(failure.code(), ErrorCode::INDEX_NOT_FOUND);
    let failure = catalog
        .drop_indexes(&collection, &["y", "y"], &*OperationContext::unlimited())
        .expect_err("it is gone by then");
    assert_eq!(failure.code(), ErrorCode::INDEX_NOT_FOUND);
    assert_eq!(catalog.drop_indexes(&collection, &["y"], &*OperationContext::unlimited()).expect("dropped").before, 4);
    catalog
        .rename(&namespace("a"), &namespace("b"), RenameTarget::Keep, &*OperationContext::unlimited())
        .expect("renamed");
    catalog.store().close().expect("closed");
    drop((collection, catalog));

    let catalog = open(directory.path(), engine);
    assert_eq!(names(&catalog), ["b", odd[0], odd[1], odd[2], odd[3]]);
    let collection = catalog.collection(&namespace("b")).expect("renamed");
    let indexes: Vec<_> = collection.indexes().iter().map(|index| index.name.clone()).collect();
    assert_eq!(indexes, ["_id_", "x", "z"]);
    let validation = collection.validate(&*OperationContext::unlimited()).expect("validated");
    assert!(validation.is_valid(), "{:?}", validation.errors);
    assert_eq!(validation.keys_per_index, [("_id_".into(), 1), ("x".into(), 1), ("z".into(), 1)]);
}

#[test]
fn a_collection_is_not_renamed_to_itself() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = open(directory.path(), engine);
        catalog.create(&namespace("a"), CreateOptions::default(), &*OperationContext::unlimited()).expect("created");
        for replace in [RenameTarget::Keep, RenameTarget::Drop] {
            let failure = catalog
                .rename(&namespace("a"), &namespace("a"), replace, &*OperationContext::unlimited())
                .expect_err("the same");
            assert_eq!(failure.code(), ErrorCode::ILLEGAL_OPERATION);
        }
    }
}

#[test]
fn a_collection_takes_the_place_of_another_only_while_both_are_alike() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = open(directory.path(), engine);
        let operation = OperationContext::unlimited();
        let rename =
            |from: &str| catalog.rename(&namespace(from), &namespace("t"), RenameTarget::DropIfAlike, &*operation);
        let made = |name: &str, options: DocumentBuf, indexes: &[&str]| {
            let create = CreateOptions { options, ..CreateOptions::default() };
            let (collection, _) = catalog.create(&namespace(name), create, &*operation).expect("created");
            let specs: Vec<_> = indexes.iter().map(|path| spec(path)).collect();
            if !specs.is_empty() {
                catalog.create_indexes(&collection, &specs, &*operation).expect("built");
            }
        };
        let validated = || DocumentBuf::new().with("validationLevel", "moderate");
        made("t", validated(), &["x", "y"]);
        for (name, options, indexes, differs) in [
            ("plain", DocumentBuf::new(), &["x", "y"][..], "collection options"),
            ("fewer", validated(), &["x"], "indexes"),
            ("more", validated(), &["x", "y", "z"], "indexes"),
            ("others", validated(), &["x", "z"], "indexes"),
        ] {
            made(name, options, indexes);
            let failure = rename(name).expect_err("they differ");
            assert_eq!(failure.code(), ErrorCode::COMMAND_FAILED);
            assert_eq!(failure.message(), format!("{differs} of target collection db.t changed during processing"));
            assert!(catalog.collection(&namespace(name)).is_some() && catalog.collection(&namespace("t")).is_some());
        }
        made("alike", validated(), &["y", "x"]);
        rename("alike").expect("they are alike");
        assert!(catalog.collection(&namespace("alike")).is_none());
        catalog.drop_collection(&namespace("t"), &*operation).expect("dropped");
        rename("plain").expect("the name is free");
    }
}
