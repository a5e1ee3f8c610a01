//! Archives and directories that MongoDB's own tool wrote: read exactly, and written again byte by byte.

use bunko_archive::archive::{self, ArchivePiece, Prelude};
use bunko_archive::metadata::Metadata;
use bunko_archive::{Documents, bson_file, compression, crc64, directory};
use bunko_bson::DocumentRef;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new("tests/fixtures").join(name)
}

fn open(name: &str) -> compression::Reader {
    let file = File::open(fixture(name)).expect("fixture");
    compression::open(Box::new(file), NonZeroUsize::MIN).expect("opened")
}

/// The prelude, and all parts in their order.
fn read(name: &str) -> (Prelude, Vec<ArchivePiece>) {
    let (prelude, mut reader) = archive::Reader::open(open(name)).expect("a prelude");
    let mut parts = Vec::new();
    while let Some(part) = reader.next(Vec::new()).expect("whole") {
        parts.push(part);
    }
    (prelude, parts)
}

/// All documents of each collection.
fn documents(parts: &[ArchivePiece]) -> BTreeMap<String, Documents> {
    let mut by_name = BTreeMap::<String, Documents>::new();
    for part in parts {
        match part {
            ArchivePiece::Documents { collection, documents, .. } => {
                let all = by_name.entry(collection.to_string()).or_default();
                all.bytes.extend_from_slice(&documents.bytes);
                all.count += documents.count;
            }
            ArchivePiece::End { collection, crc, .. } => {
                let all = by_name.entry(collection.to_string()).or_default();
                assert_eq!(crc64::checksum(&all.bytes), *crc, "{collection}");
            }
        }
    }
    by_name
}

#[test]
fn archives_are_written_again_byte_by_byte() {
    for name in ["fixture.archive", "bank.oplog.archive"] {
        let (prelude, parts) = read(name);
        let mut again = prelude.encode();
        let mut with_block = std::collections::BTreeSet::new();
        for part in &parts {
            match part {
                ArchivePiece::Documents { database, collection, documents } => {
                    with_block.insert((database, collection));
                    archive::begin_block(&mut again, database, collection);
                    again.extend_from_slice(&documents.bytes);
                    archive::end_block(&mut again);
                }
                ArchivePiece::End { database, collection, crc } => {
                    // The reader returns nothing for the empty blocks of views and empty collections.
                    if !with_block.contains(&(database, collection)) {
                        archive::begin_block(&mut again, database, collection);
                        archive::end_block(&mut again);
                    }
                    archive::end_of_namespace(&mut again, database, collection, *crc);
                }
            }
        }
        assert!(again == fs::read(fixture(name)).expect("fixture"), "{name} is written differently");
    }
}

#[test]
fn one_database_dumped_three_ways_is_the_same() {
    let (_, plain) = read("fixture.archive");
    let (_, gzip) = read("fixture.archive.gz");
    assert_eq!(open("fixture.archive.gz").compression(), compression::Compression::Gzip);
    let plain = documents(&plain);
    assert_eq!(plain, documents(&gzip));
    let counts: Vec<_> = plain.iter().map(|(name, documents)| (name.as_str(), documents.count)).collect();
    let long = "q".repeat(90);
    let expected = [
        ("capped", 50),
        ("collated", 5),
        ("empty", 0),
        ("large", 3),
        ("numbers", 2000),
        ("odd%name", 3),
        (&*long, 3),
        ("slash/in", 3),
        ("types", 29),
        ("uniq", 100),
        ("validated", 1),
        ("view_k", 0),
        ("with space", 3),
        ("with.dots.in", 3),
        ("日本語", 3),
    ];
    assert_eq!(counts, expected);

    let listing = directory::list(&fixture("directory")).expect("listed");
    assert_eq!(listing.ignored, Vec::<PathBuf>::new());
    assert_eq!(listing.databases.len(), 1);
    let database = &listing.databases[0];
    assert_eq!((database.name.as_str(), database.collections.len()), ("fixture", plain.len()));
    for collection in &database.collections {
        let name = collection.name.as_deref().expect("short");
        assert_eq!(directory::file_stem(name), collection.stem);
        assert_eq!(collection.data.is_none(), name == "view_k");
        let Some(data) = &collection.data else { continue };
        let mut reader = bson_file::Reader::new(BufReader::new(File::open(&data.path).expect("there")));
        let read = reader.next(Vec::new()).expect("whole").unwrap_or_default();
        assert_eq!((read.bytes.len() as u64, reader.offset()), (data.size_bytes, data.size_bytes));
        assert_eq!(&read, &plain[name], "{name}");
        for document in &read {
            DocumentRef::parse(document.as_bytes()).expect("well formed to its leaves");
        }
    }
}

#[test]
fn metadata_is_written_again_byte_by_byte() {
    let mut texts: Vec<String> = ["fixture.archive", "fixture.archive.gz", "bank.oplog.archive"]
        .into_iter()
        .flat_map(|name| read(name).0.namespaces)
        .filter(|namespace| namespace.collection != "oplog")
        .map(|namespace| namespace.metadata)
        .collect();
    let listing = directory::list(&fixture("directory")).expect("listed");
    for collection in &listing.databases[0].collections {
        let file = collection.metadata.as_ref().expect("all have it");
        texts.push(fs::read_to_string(&file.path).expect("UTF-8"));
    }
    assert_eq!(texts.len(), 3 * 15 + 4);
    for text in texts {
        assert_eq!(Metadata::parse(&text).expect("metadata").to_json(), text);
    }
    let prelude = fs::read_to_string(listing.prelude.expect("there").path).expect("UTF-8");
    let parsed = directory::Prelude::parse(&prelude).expect("JSON");
    assert_eq!(parsed.server_version, "4.0.3");
    assert_eq!(parsed.to_json(), prelude);
}

#[test]
fn the_oplog_is_a_namespace_without_a_database() {
    let (prelude, parts) = read("bank.oplog.archive");
    let oplog = prelude.namespaces.iter().find(|namespace| namespace.collection == "oplog").expect("there");
    assert_eq!((oplog.database.as_str(), oplog.kind.as_str()), ("", ""));
    assert_eq!(documents(&parts)["oplog"].count, 141);
}
