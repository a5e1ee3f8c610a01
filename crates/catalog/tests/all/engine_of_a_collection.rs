//! Collections in engines of their choice: what is left after a restart and a kill, and how much they hold.

use crate::opened::{namespace, open, open_with, spec, survival};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{
    Catalog, Collection, CreateOptions, EngineChoice, IndexSpec, Order, RenameTarget, Target, Verdict,
};
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_errors::ErrorCode;
use bunko_operation::OperationContext;
use bunko_store::{Batch, KeyspaceId, KeyspaceStatistics, Survival};
use bunko_testkit::directory::crash_copy;
use bunko_testkit::patience::wait_until;
use std::borrow::Cow;
use std::sync::Arc;

/// Memory limit of the in-memory engine, in bytes: room for some hundred documents.
const MEMORY_BYTES: u64 = 256 << 10;

fn document(id: i32) -> DocumentBuf {
    let mut tags = ArrayBuf::new();
    tags.push(id % 7).push(id % 5 + 100);
    DocumentBuf::new()
        .with("_id", id)
        .with("x", id)
        .with("tags", &tags)
        .with("pad", "p".repeat(id as usize % 1000).as_str())
}

/// Inserts these documents with the durability of a reply at `w: 1`. Returns how many were inserted.
fn insert(catalog: &Catalog, name: &str, ids: std::ops::Range<i32>) -> usize {
    insert_all(catalog, name, &ids.map(document).collect::<Vec<_>>())
}

fn insert_all(catalog: &Catalog, name: &str, documents: &[DocumentBuf]) -> usize {
    let bytes: Vec<_> = documents.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
    let inserted =
        catalog.insert(&namespace(name), &bytes, Order::Ordered, &*OperationContext::unlimited()).expect("runs");
    for (_, failure) in &inserted.failures {
        assert_eq!(failure.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT, "{failure}");
    }
    if let Some(lsn) = inserted.lsn {
        catalog.store().write(lsn).expect("written");
    }
    inserted.count
}

/// A collection in this engine with three indexes, one of them multikey.
fn create(catalog: &Catalog, engine: &str) -> Arc<Collection> {
    let choice = EngineChoice::checked(catalog.store(), engine, DocumentRef::EMPTY).expect("a choice");
    let create = CreateOptions { engine: Some(choice), ..CreateOptions::default() };
    let (collection, _) = catalog.create(&namespace(engine), create, &*OperationContext::unlimited()).expect("created");
    let unique =
        DocumentBuf::new().with("key", &DocumentBuf::new().with("x", 1)).with("name", "x").with("unique", true);
    let unique = IndexSpec::parse(unique.as_ref()).expect("valid");
    catalog.create_indexes(&collection, &[unique, spec("tags")], &*OperationContext::unlimited()).expect("built");
    collection
}

fn change(catalog: &Catalog, collection: &Collection, id: i32, verdict: impl Fn() -> Verdict) {
    let id = ValueRef::Int32(id);
    let record = collection.record_of_id(id, &*OperationContext::unlimited()).expect("read").expect("present");
    let changed = catalog
        .change(collection, Target::Id(record, id), &*OperationContext::unlimited(), &mut |_| Ok(verdict()))
        .expect("changed");
    catalog.store().write(changed.expect("present")).expect("written");
}

fn assert_valid(collection: &Collection, records: u64) {
    let validation = collection.validate(&*OperationContext::unlimited()).expect("validated");
    assert!(validation.is_valid(), "{:?}", validation.errors);
    assert_eq!((validation.records, collection.count()), (records, records));
}

fn durable_engines() -> impl Iterator<Item = &'static Entry> {
    ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable)
}

#[test]
fn a_collection_stays_in_its_engine() {
    for own in durable_engines() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = open(directory.path(), own);
        for engine in catalog.store().engine_names() {
            create(&catalog, engine);
            assert_eq!(insert(&catalog, engine, 0..300), 300);
            let renamed = format!("renamed {engine}");
            catalog
                .rename(&namespace(engine), &namespace(&renamed), RenameTarget::Keep, &*OperationContext::unlimited())
                .expect("renamed");
        }
        catalog.store().close().expect("closed");
        drop(catalog);

        let catalog = open(directory.path(), own);
        for engine in catalog.store().engine_names() {
            let name = format!("renamed {engine}");
            let collection = catalog.collection(&namespace(&name)).expect("it is there whatever its engine forgets");
            let indexes = collection.indexes();
            let names: Vec<_> = indexes.iter().map(|index| index.name.as_str()).collect();
            assert_eq!(names, ["_id_", "x", "tags"]);
            assert!(indexes[2].is_multikey_at(0));
            assert_eq!(catalog.store().engine_name_of(collection.records()), engine);
            let left = if survival(engine) == Survival::Durable { 300 } else { 0 };
            assert_valid(&collection, left);
            // The remaining collections take writes, and a later index is in its collection's engine.
            assert_eq!(insert(&catalog, &name, 300..310), 10);
            catalog.create_indexes(&collection, &[spec("pad")], &*OperationContext::unlimited()).expect("built");
            let later = collection.index("pad").expect("built").keyspace;
            assert_eq!(catalog.store().engine_name_of(later), engine);
            assert_valid(&collection, left + 10);
        }
        assert_eq!(catalog.databases(), ["db"]);
    }
}

/// Writes the wrong route that an earlier version left behind after it used an id twice.
fn save_a_wrong_route(catalog: &Catalog, keyspace: KeyspaceId, engine: &str) {
    let mut batch = Batch::new();
    batch.create_keyspace(keyspace, engine, &[]);
    catalog.store().commit(&batch).expect("committed");
    catalog.store().checkpoint().expect("checkpoint");
}

#[test]
fn a_keyspace_is_where_the_catalog_says_whatever_a_manifest_says() {
    for own in durable_engines() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = open(directory.path(), own);
        let collection = create(&catalog, own.name);
        let keyspaces: Vec<_> = collection.indexes().iter().map(|index| index.keyspace).collect();
        for keyspace in [collection.records()].iter().chain(&keyspaces) {
            save_a_wrong_route(&catalog, *keyspace, "memory");
        }
        catalog.store().close().expect("closed");
        drop((collection, catalog));
        let catalog = open(directory.path(), own);
        assert_eq!(insert(&catalog, own.name, 0..20), 20);
        let killed = crash_copy(directory.path());
        let catalog = open(killed.path(), own);
        assert_valid(&catalog.collection(&namespace(own.name)).expect("there"), 20);
    }
}

/// All counts in a collection's statistics, by index name.
fn counted(collection: &Collection) -> (u64, u64, Vec<(String, KeyspaceStatistics)>) {
    let indexes = collection.indexes();
    let indexes = indexes.iter().map(|index| (index.name.clone(), collection.index_statistics(index)));
    (collection.count(), collection.data_bytes(), indexes.collect())
}

#[test]
fn statistics_are_exact_right_after_a_kill() {
    for own in durable_engines() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = open(directory.path(), own);
        let durable: Vec<_> =
            catalog.store().engine_names().into_iter().filter(|engine| survival(engine) == Survival::Durable).collect();
        for round in 0..3 {
            for engine in &durable {
                let collection = catalog.collection(&namespace(engine)).unwrap_or_else(|| create(&catalog, engine));
                assert_eq!(insert(&catalog, engine, round * 100..(round + 1) * 100), 100);
                for id in round * 100..round * 100 + 30 {
                    change(&catalog, &collection, id, || Verdict::Replace(document(id).with("more", true)));
                }
                for id in round * 100 + 20..round * 100 + 40 {
                    change(&catalog, &collection, id, || Verdict::Delete);
                }
            }
            if round == 1 {
                catalog.store().checkpoint().expect("a checkpoint");
            }
            let killed = crash_copy(directory.path());
            let after = open(killed.path(), own);
            for engine in &durable {
                let [before, after] =
                    [&catalog, &after].map(|catalog| catalog.collection(&namespace(engine)).expect("present"));
                assert_eq!(counted(&before), counted(&after), "{engine} on {} in round {round}", own.name);
                assert_valid(&after, (round as u64 + 1) * 80);
            }
        }
    }
}

/// Inserts documents from `first` on until one is refused, and then the smallest documents until one of them is.
fn fill(catalog: &Catalog, name: &str, first: i32) {
    let mut next = first;
    while insert(catalog, name, next..next + 100) == 100 {
        next += 100;
        assert!(next < first + 10_000, "no end");
    }
    for id in next + 100.. {
        if insert_all(catalog, name, &[DocumentBuf::new().with("_id", id).with("x", id)]) == 0 {
            break;
        }
    }
}

/// Waits for the room of dropped data, which the engine frees in the background.
fn wait_for_room(catalog: &Catalog, engine: &str) {
    let engine = catalog.store().engine(engine).expect("an engine");
    wait_until("there is room again", || engine.size_bytes() <= MEMORY_BYTES / 2);
}

/// Runs `test` on a full collection in memory, beside each other engine. It gets the catalog, the name of the
/// collection and of its engine, and the collection.
fn on_full_memory(test: impl Fn(&Catalog, &str, &Arc<Collection>)) {
    let memory = bunko_engines::find("memory").expect("an engine").name;
    let limit = EngineOptions { memory_limit_bytes: MEMORY_BYTES, ..EngineOptions::default() };
    for own in ENGINES {
        let directory = tempfile::tempdir().expect("temporary directory");
        let catalog = open_with(directory.path(), own, &limit);
        let collection = create(&catalog, memory);
        fill(&catalog, memory, 0);
        test(&catalog, memory, &collection);
    }
}

#[test]
fn an_engine_in_memory_takes_no_more_than_it_may() {
    on_full_memory(|catalog, memory, collection| {
        // The last batch was cut where the room ended, and no document of it is incomplete.
        let stored = collection.count();
        assert!(stored > 100);
        assert_valid(collection, stored);
        let id = ValueRef::Int32(1);
        let record = collection.record_of_id(id, &*OperationContext::unlimited()).expect("read").expect("present");
        let mut bigger = |_: DocumentRef<'_>| Ok(Verdict::Replace(document(1).with("more", "m".repeat(1000).as_str())));
        let failure = catalog
            .change(collection, Target::Id(record, id), &*OperationContext::unlimited(), &mut bigger)
            .expect_err("no room");
        assert_eq!(failure.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT);
        assert_valid(collection, stored);
        // Deletes make room.
        for id in 0..50 {
            change(catalog, collection, id, || Verdict::Delete);
        }
        assert_eq!(insert(catalog, memory, 0..10), 10);
        assert_valid(collection, stored - 40);
        // Dropping a whole collection makes room, even if nothing is left.
        fill(catalog, memory, 100_000);
        catalog.drop_collection(&namespace(memory), &*OperationContext::unlimited()).expect("dropped");
        wait_for_room(catalog, memory);
        create(catalog, memory);
        assert_eq!(insert(catalog, memory, 0..100), 100);
    });
}

#[test]
fn an_index_that_finds_no_room_is_not_left_behind() {
    on_full_memory(|catalog, _, collection| {
        // Room for the index to begin, but not for all of its keys.
        for id in 0..10 {
            change(catalog, collection, id, || Verdict::Delete);
        }
        let stored = collection.count();
        let failure =
            catalog.create_indexes(collection, &[spec("pad")], &*OperationContext::unlimited()).expect_err("no room");
        assert_eq!(failure.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT);
        let names: Vec<_> = collection.indexes().iter().map(|index| index.name.clone()).collect();
        assert_eq!(names, ["_id_", "x", "tags"]);
        assert_valid(collection, stored);
        catalog.drop_indexes(collection, &["tags"], &*OperationContext::unlimited()).expect("no build is going on");
    });
}
