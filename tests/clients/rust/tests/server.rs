//! Bulk writes, cursors, indexes, errors, compression, write concern, sessions.

use bunko_clients_rust::{Scratch, code, identifiers, sorted};
use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{CollectionOptions, Compressor, IndexOptions, WriteConcern};
use mongodb::sync::Collection;

fn unique() -> IndexOptions {
    IndexOptions::builder().unique(true).build()
}

#[test]
fn insert_many_with_duplicates() {
    let scratch = Scratch::new("duplicates");
    let things = scratch.things();
    for (ordered, failed, kept) in [(true, vec![1], vec![1]), (false, vec![1, 3], vec![1, 2, 3])] {
        things.delete_many(doc! {}).run().unwrap();
        let documents = [1, 1, 2, 2, 3].map(|i| doc! { "_id": i });
        let error = things.insert_many(documents).ordered(ordered).run().unwrap_err();
        let ErrorKind::InsertMany(many) = error.kind.as_ref() else { panic!("{error}") };
        let errors = many.write_errors.as_ref().unwrap();
        assert_eq!(errors.iter().map(|error| error.index).collect::<Vec<_>>(), failed);
        assert!(errors.iter().all(|error| error.code == 11000));
        assert_eq!(sorted(&things), kept.iter().map(|i| doc! { "_id": i }).collect::<Vec<_>>());
    }
}

#[test]
fn a_duplicate_key_is_named() {
    let scratch = Scratch::new("duplicate_key");
    let things = scratch.things();
    things.create_index(IndexModel::builder().keys(doc! { "a": 1, "b": -1 }).options(unique()).build()).run().unwrap();
    things.insert_one(doc! { "_id": 1, "a": "x", "b": 2 }).run().unwrap();
    let error = things.insert_one(doc! { "_id": 2, "a": "x", "b": 2 }).run().unwrap_err();
    assert_eq!(code(&error), Some(11000));
    // The driver keeps no keyPattern; the command's reply has it.
    let insert = doc! { "insert": "things", "documents": [{ "_id": 3, "a": "x", "b": 2 }] };
    let reply = scratch.database.run_command(insert).run().unwrap();
    let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
    assert_eq!(error.get_document("keyPattern").unwrap(), &doc! { "a": 1, "b": -1 });
    assert_eq!(error.get_document("keyValue").unwrap(), &doc! { "a": "x", "b": 2 });
}

#[test]
fn a_cursor_over_100_000_documents() {
    let scratch = Scratch::new("cursor");
    let things = scratch.things();
    things.insert_many(identifiers(100_000)).run().unwrap();
    let found = things.find(doc! {}).run().unwrap().map(|document| document.unwrap().get_i32("_id").unwrap());
    assert!(found.eq(0..100_000));
}

#[test]
fn a_killed_cursor_is_gone() {
    let scratch = Scratch::new("killed_cursor");
    scratch.things().insert_many(identifiers(10)).run().unwrap();
    let mut session = scratch.client.start_session().run().unwrap();
    let mut run = |command| scratch.database.run_command(command).session(&mut session).run();
    let reply = run(doc! { "find": "things", "batchSize": 2 }).unwrap();
    let cursor = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
    // The driver refuses killCursors with a session of the caller's.
    scratch.database.run_command(doc! { "killCursors": "things", "cursors": [cursor] }).run().unwrap();
    let error = run(doc! { "getMore": cursor, "collection": "things" }).unwrap_err();
    assert_eq!(code(&error), Some(43));
}

#[test]
fn indexes() {
    let scratch = Scratch::new("indexes");
    let things = scratch.things();
    things.insert_many((0..200).map(|i| doc! { "_id": i, "a": i % 10, "b": i })).run().unwrap();
    let made = things.create_indexes([
        IndexModel::builder().keys(doc! { "a": 1 }).build(),
        IndexModel::builder().keys(doc! { "b": -1 }).options(unique()).build(),
        IndexModel::builder().keys(doc! { "a": 1, "b": 1 }).build(),
    ]);
    assert_eq!(made.run().unwrap().index_names, ["a_1", "b_-1", "a_1_b_1"]);
    assert_eq!(things.list_index_names().run().unwrap(), ["_id_", "a_1", "b_-1", "a_1_b_1"]);

    assert_eq!(
        winning_index(&scratch, doc! { "find": "things", "filter": { "a": 3, "b": { "$gt": 150 } } }),
        "a_1_b_1"
    );
    assert_eq!(winning_index(&scratch, doc! { "find": "things", "filter": { "a": 3 }, "hint": "a_1" }), "a_1");
    things.drop_index("a_1").run().unwrap();
    let hinted = doc! { "find": "things", "hint": "a_1" };
    assert_eq!(code(&scratch.database.run_command(hinted).run().unwrap_err()), Some(2));
    assert_eq!(code(&things.drop_index("a_1").run().unwrap_err()), Some(27));
}

fn winning_index(scratch: &Scratch, find: Document) -> String {
    let reply = scratch.database.run_command(doc! { "explain": find, "verbosity": "queryPlanner" }).run().unwrap();
    let plan = reply.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
    let scan = plan.get_document("inputStage").unwrap();
    assert_eq!(scan.get_str("stage").unwrap(), "IXSCAN");
    scan.get_str("indexName").unwrap().to_owned()
}

#[test]
fn error_codes() {
    let scratch = Scratch::new("errors");
    let database = &scratch.database;
    let refusal = |command| code(&database.run_command(command).run().unwrap_err());
    assert_eq!(refusal(doc! { "listIndexes": "missing" }), Some(26));
    assert_eq!(refusal(doc! { "noSuchCommand": 1 }), Some(59));
    assert_eq!(refusal(doc! { "find": "one", "filter": 5 }), Some(14));
    assert_eq!(refusal(doc! { "find": "one", "bogus": 5 }), Some(40415));

    database.create_collection("one").run().unwrap();
    database.create_collection("two").run().unwrap();
    let admin = scratch.client.database("admin");
    let rename = |from: &str, to: &str| {
        let namespace = |collection| format!("{}.{collection}", database.name());
        code(&admin.run_command(doc! { "renameCollection": namespace(from), "to": namespace(to) }).run().unwrap_err())
    };
    assert_eq!(rename("missing", "x"), Some(26));
    assert_eq!(rename("one", "two"), Some(48));
    let bogus = scratch.things().update_one(doc! {}, doc! { "$bogus": { "a": 1 } }).run();
    assert_eq!(code(&bogus.unwrap_err()), Some(9));
}

#[test]
fn compression() {
    let compressors = [Compressor::Zlib { level: None }, Compressor::Snappy, Compressor::Zstd { level: None }];
    for (name, compressor) in ["zlib", "snappy", "zstd"].into_iter().zip(compressors) {
        let scratch = Scratch::with(name, |options| options.compressors = Some(vec![compressor]));
        scratch.things().insert_many(identifiers(5_000)).run().unwrap();
        assert_eq!(sorted(&scratch.things()).len(), 5_000);
        let hello = scratch.database.run_command(doc! { "hello": 1, "compression": [name] }).run().unwrap();
        assert_eq!(hello.get_array("compression").unwrap()[0].as_str(), Some(name));
    }
}

#[test]
fn write_concerns() {
    let scratch = Scratch::new("write_concerns");
    let with = |concern: WriteConcern| -> Collection<Document> {
        let options = CollectionOptions::builder().write_concern(concern).build();
        scratch.database.collection_with_options("things", options)
    };
    with(WriteConcern::nodes(1)).insert_one(doc! { "_id": 1 }).run().unwrap();
    with(WriteConcern::builder().journal(true).build()).insert_one(doc! { "_id": 2 }).run().unwrap();
    with(WriteConcern::majority()).insert_one(doc! { "_id": 3 }).run().unwrap();
    // This driver refuses w: 0 by itself.
    assert_eq!(sorted(&scratch.things()).len(), 3);
    let refusal = with(WriteConcern::nodes(2)).insert_one(doc! {}).run().unwrap_err();
    // BadValue from a server that stands alone, UnsatisfiableWriteConcern from a replica set.
    assert!(matches!(code(&refusal), Some(2 | 100)), "{refusal}");
}

#[test]
fn a_session_reads_its_own_writes() {
    let scratch = Scratch::new("session");
    let mut session = scratch.client.start_session().causal_consistency(true).run().unwrap();
    scratch.things().insert_one(doc! { "_id": 1 }).session(&mut session).run().unwrap();
    assert_eq!(scratch.things().find_one(doc! {}).session(&mut session).run().unwrap(), Some(doc! { "_id": 1 }));
}
