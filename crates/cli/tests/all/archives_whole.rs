//! Archives are restored completely, and dumped again unchanged: options, indexes, UUIDs and documents of every kind of
//! collection.

use crate::peer::Running;
use crate::tool::{archive, connect, fixture, succeed, text};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, extended_json};
use bunko_client::Connection;
use bunko_testkit::shell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// State of one collection.
#[derive(Debug, PartialEq)]
struct Kept {
    /// Its `listCollections` entry, including the UUID if a dump has it.
    described: String,
    /// Its `listIndexes` entries.
    indexes: Vec<String>,
    /// Its documents: in insertion order if that is guaranteed, otherwise sorted by their bytes.
    documents: Vec<Vec<u8>>,
}

fn print(document: &DocumentBuf) -> String {
    shell::print(ValueRef::Document(document.as_ref()))
}

/// All documents of a cursor, or the server's error.
fn all(connection: &mut Connection, database: &str, command: &str) -> Result<Vec<DocumentBuf>, String> {
    let command = shell::parse_document(command).expect(command);
    let found = connection.find_all(database, command.as_ref()).map_err(|error| error.to_string())?;
    found.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn quoted(name: &str) -> String {
    shell::print(ValueRef::String(name))
}

/// All collections of a database.
fn kept(connection: &mut Connection, database: &str) -> BTreeMap<String, Kept> {
    let listed = all(connection, database, "{listCollections: 1}").expect("listed");
    let described = listed.into_iter().map(|described| {
        let name = described.as_ref().get("name").and_then(ValueRef::as_str).expect("a name").to_owned();
        let is_view = described.as_ref().get("type").and_then(ValueRef::as_str) == Some("view");
        let indexes = match all(connection, database, &format!("{{listIndexes: {}}}", quoted(&name))) {
            Ok(indexes) => indexes.iter().map(print).collect(),
            Err(said) if is_view => vec![said],
            Err(said) => panic!("{name}: {said}"),
        };
        let documents = all(connection, database, &format!("{{find: {}, hint: {{$natural: 1}}}}", quoted(&name)));
        let mut documents: Vec<_> = documents.expect("readable").into_iter().map(DocumentBuf::into_bytes).collect();
        if !print(&described).contains("capped: true") {
            documents.sort();
        }
        // Dumps contain no UUIDs of the collections that the server makes behind views and time series.
        let is_told = |field: &bunko_bson::Element<'_>| field.name != "info" || !name.starts_with("system.");
        let described = described.as_ref().iter().filter(is_told);
        let described = described.fold(DocumentBuf::new(), |all, field| all.with(field.name, field.value));
        (name, Kept { described: print(&described), indexes, documents })
    });
    described.collect()
}

#[track_caller]
fn assert_same(database: &str, found: &BTreeMap<String, Kept>, wanted: &BTreeMap<String, Kept>) {
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "collections of {database}");
    for (name, wanted) in wanted {
        let found = &found[name];
        assert_eq!(found.described, wanted.described, "{database}.{name}");
        assert_eq!(found.indexes, wanted.indexes, "{database}.{name}");
        // Compared without printing: the documents are too long.
        assert!(found.documents == wanted.documents, "the documents of {database}.{name} differ");
    }
}

/// The documents of a dumped file; in their order only if it means something.
fn dumped_documents(path: &Path, is_ordered: bool) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).expect("dumped");
    let (mut left, mut documents) = (bytes.as_slice(), Vec::new());
    while let Some(length) = left.first_chunk() {
        let (document, rest) = left.split_at(u32::from_le_bytes(*length) as usize);
        DocumentRef::parse(document).expect("a document");
        documents.push(document.to_vec());
        left = rest;
    }
    if !is_ordered {
        documents.sort();
    }
    documents
}

/// Compares two dumps of a database into directories byte for byte.
fn assert_same_files(one: &Path, other: &Path) {
    let names = |directory: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(directory).expect("dumped").map(|entry| entry.expect("readable").file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(one), names(other));
    for name in names(one) {
        let name = name.to_str().expect("UTF-8");
        let (one, other) = (one.join(name), other.join(name));
        if let Some(collection) = name.strip_suffix(".bson") {
            let metadata = fs::read_to_string(one.with_file_name(format!("{collection}.metadata.json")));
            let is_ordered = metadata.is_ok_and(|metadata| metadata.contains("\"capped\":true"));
            assert!(dumped_documents(&one, is_ordered) == dumped_documents(&other, is_ordered), "{name}");
        } else {
            let text = |path| fs::read_to_string(path).expect("readable");
            assert_eq!(text(one), text(other), "{name}");
        }
    }
}

/// A document with its fields sorted by name, and those of its nested documents except inside arrays.
fn sorted(document: DocumentRef<'_>) -> DocumentBuf {
    let mut fields: Vec<_> = document.iter().collect();
    fields.sort_by_key(|field| field.name);
    fields.iter().fold(DocumentBuf::new(), |all, field| match field.value {
        // In a key pattern the order has a meaning.
        ValueRef::Document(inner) if field.name != "key" => all.with(field.name, &sorted(inner)),
        value => all.with(field.name, value),
    })
}

/// Metadata of MongoDB 4.0 as MongoDB 8.2 would write it.
fn modern(metadata: &str) -> (String, Vec<String>) {
    let metadata = extended_json::parse_document(metadata).expect("metadata");
    let mut options = DocumentBuf::new();
    if let Some(ValueRef::Document(old)) = metadata.as_ref().get("options") {
        options.extend(old);
        if old.get("validator").is_some() && old.get("validationAction").is_none() {
            options.append("validationAction", "error");
        }
    }
    let indexes = metadata.as_ref().get("indexes").and_then(ValueRef::as_array).expect("indexes");
    let mut indexes: Vec<_> = indexes
        .iter()
        .map(|index| {
            let index = index.as_document().expect("an index");
            let kept = index.iter().filter(|field| field.name != "ns");
            let kept = kept.fold(DocumentBuf::new(), |all, field| all.with(field.name, field.value));
            print(&sorted(kept.as_ref()))
        })
        .collect();
    indexes.sort();
    (print(&sorted(options.as_ref())), indexes)
}

/// Restores an archive, dumps it in both forms, restores these on another server, and compares everything.
fn go_round(from: &str, databases: &[&str], directory: &Path) {
    let (first, second) = (Running::start(), Running::start());
    let state = tempfile::NamedTempFile::new().expect("a temporary file");
    let restore = |running: &Running, from: &str| {
        let flags = ["--drop", "--preserveUUID", "--verify", "--resumeFile", text(state.path()), from];
        let said = succeed("restore", running.address(), &flags);
        assert!(said.contains("verified"), "{said}");
    };
    restore(&first, from);
    let mut connection = connect(first.address());
    let wanted: Vec<_> = databases.iter().map(|database| kept(&mut connection, database)).collect();
    assert!(wanted.iter().all(|collections| !collections.is_empty()));
    let (files, again, file) = (directory.join("files"), directory.join("again"), directory.join("archive"));
    succeed("dump", first.address(), &["--out", text(&files)]);
    succeed("dump", first.address(), &[&archive(&file)]);
    let as_archive = archive(&file);
    for form in [text(&files), as_archive.as_str()] {
        restore(&second, form);
        let mut connection = connect(second.address());
        for (database, wanted) in databases.iter().zip(&wanted) {
            assert_same(database, &kept(&mut connection, database), wanted);
        }
        succeed("dump", second.address(), &["--out", text(&again)]);
        for database in databases {
            assert_same_files(&files.join(database), &again.join(database));
        }
        fs::remove_dir_all(&again).expect("removed");
    }
}

#[test]
fn dumps_of_mongodump_are_dumped_again_unchanged() {
    for form in [
        archive(&fixture("fixture.archive")),
        archive(&fixture("fixture.archive.gz")),
        text(&fixture("directory")).to_owned(),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        go_round(&form, &["fixture"], directory.path());
        let original = fixture("directory").join("fixture");
        let mut compared = 0;
        for entry in fs::read_dir(&original).expect("readable") {
            let name = entry.expect("readable").file_name().into_string().expect("UTF-8");
            let (ours, theirs) = (directory.path().join("files/fixture").join(&name), original.join(&name));
            if name.strip_suffix(".bson").is_some() {
                let is_ordered = name == "capped.bson";
                assert!(dumped_documents(&ours, is_ordered) == dumped_documents(&theirs, is_ordered), "{name}");
            } else if name.ends_with(".metadata.json") {
                let text = |path| fs::read_to_string(path).expect("readable");
                let (ours, theirs) = (text(ours), text(theirs));
                assert_eq!(modern(&ours), modern(&theirs), "{name}");
                for field in ["uuid", "collectionName", "type"] {
                    let of = |metadata: &str| {
                        extended_json::parse_document(metadata).expect("metadata").as_ref().get(field).map(shell::print)
                    };
                    assert_eq!(of(&ours), of(&theirs), "{field} in {name}");
                }
            } else {
                continue;
            }
            compared += 1;
        }
        assert_eq!(compared, 29, "files of the original");
    }
}

#[test]
fn a_dump_with_an_oplog_goes_out_again_as_it_came() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    go_round(&archive(&fixture("bank.oplog.archive")), &["bank"], directory.path());
}

/// Collections that archives of older servers cannot contain.
const EVERY_KIND: &[&str] = &[
    "{create: 'clustered', clusteredIndex: {key: {_id: 1}, unique: true, name: 'by day'}, expireAfterSeconds: 1000000000}",
    "{insert: 'clustered', documents: [{_id: ISODate('2026-01-02T00:00:00Z'), n: 1}, {_id: ISODate('2026-01-01T00:00:00Z'), n: 2}]}",
    "{create: 'series', timeseries: {timeField: 'at', metaField: 'of', granularity: 'minutes'}, expireAfterSeconds: 1000000000}",
    "{insert: 'series', documents: [{at: ISODate('2026-01-02T00:00:00Z'), of: {k: 1}, v: 1.5}, {at: ISODate('2026-01-02T00:01:00Z'), of: {k: 1}, v: 2}, {at: ISODate('2026-01-03T00:00:00Z'), of: 'x', v: {w: 1}}]}",
    "{createIndexes: 'series', indexes: [{key: {of: 1, at: -1}, name: 'source'}, {key: {v: 1}, name: 'measured'}]}",
    "{create: 'spanned', timeseries: {timeField: 'at', bucketMaxSpanSeconds: 300, bucketRoundingSeconds: 300}}",
    "{insert: 'spanned', documents: [{at: ISODate('2026-01-02T00:00:00Z'), v: 1}]}",
    "{create: 'capped', capped: true, size: 8192, max: 3}",
    "{insert: 'capped', documents: [{_id: 3}, {_id: 1}, {_id: 4}, {_id: 2}]}",
    "{create: 'collated', collation: {locale: 'sv', strength: 2, numericOrdering: true}}",
    "{createIndexes: 'collated', indexes: [{key: {s: 1}, name: 's'}, {key: {t: 1}, name: 'simple', collation: {locale: 'simple'}}]}",
    "{insert: 'collated', documents: [{_id: 'a10', s: 'Å'}, {_id: 'a9', s: 'å', t: 'x'}]}",
    "{create: 'validated', validator: {$and: [{n: {$type: 'int'}}, {$expr: {$lt: ['$n', 9]}}]}, validationLevel: 'strict', validationAction: 'warn', changeStreamPreAndPostImages: {enabled: true}}",
    "{insert: 'validated', documents: [{_id: 1, n: 'no int'}]}",
    "{create: 'low', viewOn: 'all', pipeline: [{$match: {'a.b': {$lt: 3}}}, {$addFields: {'x.y': {$literal: '$z'}}}], collation: {locale: 'en', strength: 1}}",
    "{create: 'lower', viewOn: 'low', pipeline: [{$sort: {_id: 1}}, {$limit: 1}], collation: {locale: 'en', strength: 1}}",
    "{create: 'all', storageEngine: {wiredTiger: {configString: 'block_compressor=zstd'}}}",
    "{createIndexes: 'all', indexes: [
        {key: {'$**': 1}, name: 'wild', wildcardProjection: {a: 1, _id: 0}},
        {key: {c: 1, 'd.$**': -1}, name: 'compound wild'},
        {key: {z: 'hashed', y: 1}, name: 'hashed'},
        {key: {place: '2d', n: 1}, name: 'flat', bits: 20, min: -500, max: 500},
        {key: {ball: '2dsphere', n: -1}, name: 'ball', '2dsphereIndexVersion': 2},
        {key: {p: 1, title: 'text', body: 'text', q: -1}, name: 'words', weights: {title: 10, body: 2}, default_language: 'german', language_override: 'tongue'},
        {key: {u: 1, 'a.b': -1}, name: 'one of them', unique: true, partialFilterExpression: {u: {$gt: 1.5}, $or: [{c: 1}, {n: {$in: [1, 2]}}]}},
        {key: {h: 1}, name: 'hidden', hidden: true, sparse: true},
        {key: {at: 1}, name: 'short-lived', expireAfterSeconds: 4000000},
        {key: {r: 1}, name: 'to be unique', prepareUnique: true, sparse: true},
        {key: {s: -1}, name: 'german', collation: {locale: 'de@collation=phonebook', caseFirst: 'upper'}}]}",
    "{insert: 'all', documents: [{_id: {b: 1, a: 2}, a: {b: 1}, u: 2, c: 1, place: [1, 2], ball: {type: 'Point', coordinates: [1, 2]}, title: 'Häuser', body: 'grün', at: ISODate('2099-01-01T00:00:00Z')},
        {_id: NumberDecimal('1.10'), a: [{b: 2}, {b: []}], u: 3, tongue: 'french', title: 'maisons', s: 'Ä', r: 1},
        {_id: BinData(4, 'AAECAwQFBgcICQoLDA0ODw=='), a: null, h: MinKey, d: {e: [1, {f: MaxKey}]}, n: NumberLong(7), z: undefined}]}",
    "{create: 'ünïcode .names 日本'}",
    "{insert: 'ünïcode .names 日本', documents: [{_id: 1, '': 1, 'a.b': 2, 'ü': [undefined]}]}",
];

#[test]
fn every_kind_of_collection_goes_out_and_comes_back() {
    let source = Running::start();
    for command in EVERY_KIND {
        let said = source.peer().text("every", command);
        assert!(said.contains("ok: 1.0") && !said.contains("writeErrors"), "{command}: {said}");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("every");
    succeed("dump", source.address(), &[&archive(&file)]);
    let wanted = kept(&mut connect(source.address()), "every");
    go_round(&archive(&file), &["every"], directory.path());
    // Restored once more, and compared with the original state.
    let again = Running::start();
    succeed("restore", again.address(), &["--drop", "--preserveUUID", &archive(&directory.path().join("archive"))]);
    assert_same("every", &kept(&mut connect(again.address()), "every"), &wanted);
}
