//! Dumps from a server whose connections break, resumed after interruptions, with and without an oplog.

mod shelf;

use bunko_archive::archive::{ArchivePiece, Reader};
use bunko_archive::compression::Compression;
use bunko_archive::directory;
use bunko_archive::split_document;
use bunko_bson::{DocumentBuf, Timestamp, ValueRef};
use bunko_host::Clock;
use bunko_tools::dump::{
    ArchiveTarget, DumpOptions, DumpSummary, OplogMode, Output, Resume, UsersAndRoles, Views, run,
};
use bunko_tools::progress::Progress;
use bunko_tools::{Interrupted, ToolError};
use shelf::{Collection, Fault, Shelf};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

const GIB: i64 = 1024 * 1024 * 1024;

type Contents = BTreeMap<String, Vec<i32>>;

/// `shop.large` claims a size that is read in several ranges; the others are read in one.
fn shelf(fault: Fault) -> Shelf {
    let large = Collection { size_claimed: GIB, ..Collection::numbered("shop", "large", 900, 20_000) };
    let small = Collection::numbered("shop", "small", 50, 10);
    let posts = Collection::numbered("blog", "posts", 300, 20_000);
    let empty = Collection::numbered("blog", "empty", 0, 0);
    Shelf { collections: Arc::new(vec![large, small, posts, empty]), fault, ..Shelf::default() }
}

fn dumped() -> Contents {
    let ids = |count| (0..count).collect();
    [("blog.empty", 0), ("blog.posts", 300), ("shop.large", 900), ("shop.small", 50)]
        .map(|(name, count)| (name.to_owned(), ids(count)))
        .into()
}

fn archive_options(path: &Path, compression: Compression) -> DumpOptions {
    let threads = NonZeroUsize::new(2).expect("not zero");
    let output = Output::Archive(ArchiveTarget::File(path.to_owned()));
    DumpOptions { compression, threads, ..DumpOptions::new(output) }
}

fn dump(shelf: &Shelf, options: &DumpOptions) -> Result<DumpSummary, ToolError> {
    let interrupted = Interrupted::clone(&shelf.interrupted);
    run(shelf, options, &Arc::new(Progress::new(Clock::machine())), &interrupted)
}

/// The sorted `_id`s of each namespace, from an archive whose format is checked.
fn read_archive(path: &Path) -> Contents {
    let file = std::fs::File::open(path).expect("the archive");
    let input = bunko_archive::compression::open(Box::new(file), NonZeroUsize::MIN).expect("a stream");
    let (prelude, mut reader) = Reader::open(input).expect("a prelude");
    let name = |database: &str, collection: &str| format!("{database}.{collection}");
    let entries = prelude.namespaces.iter().map(|entry| (name(&entry.database, &entry.collection), Vec::new()));
    let mut contents: Contents = entries.collect();
    while let Some(part) = reader.next(Vec::new()).expect("a sound archive") {
        if let ArchivePiece::Documents { database, collection, documents } = part {
            contents.entry(name(&database, &collection)).or_default().extend(ids(&documents.bytes));
        }
    }
    for ids in contents.values_mut() {
        ids.sort_unstable();
    }
    contents
}

fn ids(mut bytes: &[u8]) -> Vec<i32> {
    let mut ids = Vec::new();
    while let Some((document, rest)) = split_document(bytes).expect("a document") {
        let document = bunko_bson::DocumentRef::parse(document).expect("sound");
        ids.push(match document.get("_id") {
            Some(ValueRef::Int32(id)) => id,
            other => panic!("{other:?}"),
        });
        bytes = rest;
    }
    ids
}

fn read_directory(root: &Path) -> Contents {
    let listing = directory::list(root).expect("a dump");
    let mut contents = Contents::new();
    for database in &listing.databases {
        for collection in &database.collections {
            let name = format!("{}.{}", database.name, collection.name.as_deref().expect("a name"));
            let mut ids =
                collection.data.as_ref().map_or(Vec::new(), |data| ids(&std::fs::read(&data.path).expect("the file")));
            ids.sort_unstable();
            contents.insert(name, ids);
        }
    }
    contents
}

#[test]
fn broken_connections_lose_nothing_and_double_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dump.archive");
    for every in [3, 4, 7] {
        let summary = dump(&shelf(Fault::DisconnectEvery(every)), &archive_options(&path, Compression::None));
        let summary = summary.expect("retried");
        assert_eq!(summary.collections.iter().map(|collection| collection.documents).sum::<u64>(), 1250);
        assert_eq!(read_archive(&path), dumped(), "every {every}");
    }
}

#[test]
fn an_interrupted_archive_goes_on_to_the_same_contents() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dump.archive");
    let state = directory.path().join("dump.archive.resume");
    for compression in [Compression::None, Compression::Zstd { level: 1 }, Compression::Lz4, Compression::Gzip] {
        let options = archive_options(&path, compression);
        for at in [1, 6, 11, 16] {
            let result = dump(&shelf(Fault::InterruptAt(at)), &options);
            assert!(matches!(result, Err(ToolError::Interrupted)), "{result:?}");
            assert!(state.exists());
            // Bytes that a kill leaves after the recorded ones are cut off.
            let mut bytes = std::fs::read(&path).expect("the archive");
            bytes.extend_from_slice(b"half a unit");
            std::fs::write(&path, bytes).expect("written");
            let again = DumpOptions { resume: Resume::Continue, ..options.clone() };
            let result = dump(&shelf(Fault::InterruptAt(5)), &again);
            if result.is_err() {
                dump(&shelf(Fault::None), &again).expect("finished");
            }
            assert_eq!(read_archive(&path), dumped(), "{compression:?} at {at}");
            assert!(!state.exists());
            if compression != Compression::None {
                let file = std::fs::File::open(&path).expect("the archive");
                let index = bunko_archive::index::read(&file).expect("an index").expect("is there");
                let end = index.units.last().map(|unit| unit.out_offset + u64::from(unit.out_bytes));
                assert!(index.units[0].out_offset == 0 && end < Some(file.metadata().expect("there").len()));
            }
        }
    }
}

#[test]
fn an_interrupted_directory_goes_on_to_the_same_contents() {
    let directory = tempfile::tempdir().expect("a directory");
    for at in [1, 6, 11, 16] {
        let root = directory.path().join(at.to_string());
        let options = DumpOptions::new(Output::Directory(root.clone()));
        let result = dump(&shelf(Fault::InterruptAt(at)), &options);
        assert!(matches!(result, Err(ToolError::Interrupted)), "{result:?}");
        let summary =
            dump(&shelf(Fault::None), &DumpOptions { resume: Resume::Continue, ..options }).expect("finished");
        assert_eq!(summary.collections.iter().map(|collection| collection.documents).sum::<u64>(), 1250);
        assert_eq!(read_directory(&root), dumped(), "at {at}");
        assert!(!root.join(".bunko-resume").exists());
    }
}

#[test]
fn going_on_needs_an_unfinished_dump_of_the_same_kind() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dump.archive");
    let options = archive_options(&path, Compression::None);
    let again = DumpOptions { resume: Resume::Continue, ..options.clone() };
    let message = |options: &DumpOptions| dump(&shelf(Fault::None), options).expect_err("refused").to_string();
    dump(&shelf(Fault::None), &options).expect("dumped");
    let finished = std::fs::read(&path).expect("the archive");
    let refused = message(&again);
    assert!(refused.contains("dump.archive.resume is not there") && refused.contains("was finished"), "{refused}");
    assert!(std::fs::read(&path).expect("the archive") == finished, "what is finished is left alone");
    dump(&shelf(Fault::InterruptAt(3)), &options).expect_err("interrupted");
    assert!(message(&DumpOptions { compression: Compression::Lz4, ..again.clone() }).contains("other flags"));
    std::fs::write(&path, b"cut").expect("written");
    assert!(message(&again).contains("has 3 bytes, but"));
}

/// Notes to the user of a dump that is resumed.
fn told_of(options: &DumpOptions) -> Vec<String> {
    let progress = Arc::new(Progress::new(Clock::machine()));
    let again = DumpOptions { resume: Resume::Continue, ..options.clone() };
    run(&shelf(Fault::None), &again, &progress, &Interrupted::default()).expect("begun anew");
    progress.take_notes()
}

#[test]
fn going_on_with_nothing_begins_anew_and_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dump.archive");
    let archive = archive_options(&path, Compression::None);
    let notes = told_of(&archive);
    assert!(matches!(&notes[..], [note] if note.contains("dump.archive.resume is not there: nothing to continue")));
    assert_eq!(read_archive(&path), dumped());
    // Killed before the plan was written: the dump begins anew and overwrites existing output.
    for torn in ["", "{\"fingerprint\":\"f"] {
        std::fs::write(directory.path().join("dump.archive.resume"), torn).expect("written");
        let notes = told_of(&archive);
        assert!(matches!(&notes[..], [note] if note.contains("dump.archive.resume is empty")), "{notes:?}");
        assert_eq!(read_archive(&path), dumped());
    }
    let root = directory.path().join("files");
    std::fs::create_dir(&root).expect("made");
    assert_eq!(told_of(&DumpOptions::new(Output::Directory(root.clone()))).len(), 1);
    assert_eq!(read_directory(&root), dumped());
}

#[test]
fn a_dump_that_does_not_begin_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, root) = (directory.path().join("dump.archive"), directory.path().join("files"));
    for options in [archive_options(&path, Compression::None), DumpOptions::new(Output::Directory(root))] {
        let nothing = DumpOptions { database: Some("shop".into()), collection: Some("nothing".into()), ..options };
        dump(&shelf(Fault::None), &nothing).expect_err("there is none");
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 0);
    }
}

#[test]
fn a_pipe_cannot_be_gone_on_with() {
    let null = archive_options(Path::new("/dev/null"), Compression::None);
    dump(&shelf(Fault::None), &null).expect("dumped");
    let again = DumpOptions { resume: Resume::Continue, ..null };
    let error = dump(&shelf(Fault::None), &again).expect_err("refused");
    assert!(matches!(&error, ToolError::Usage(message) if message.contains("--resume")), "{error}");
}

fn capped() -> Collection {
    let options = DocumentBuf::new().with("capped", true).with("size", 1 << 20).with("uuid", "old servers list it");
    let uuid = ValueRef::Binary { subtype: 4, bytes: &[0xab; 16] };
    let listed = DocumentBuf::new()
        .with("name", "log")
        .with("type", "collection")
        .with("options", &options)
        .with("info", &DocumentBuf::new().with("uuid", uuid));
    Collection { listed, ..Collection::numbered("shop", "log", 400, 20_000) }
}

#[test]
fn a_capped_collection_begins_again_while_nothing_of_it_is_written_and_fails_after() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dump.archive");
    let with = |fault| Shelf { collections: Arc::new(vec![capped()]), fault, ..Shelf::default() };
    dump(&with(Fault::DisconnectAt(2)), &archive_options(&path, Compression::None)).expect("begun again");
    assert_eq!(read_archive(&path)["shop.log"].len(), 400);
    let error = dump(&with(Fault::DisconnectAt(6)), &archive_options(&path, Compression::None));
    assert!(error.expect_err("lost").to_string().contains("has to be dumped again"));
    // Nothing of the collection was recorded, so it is read from its beginning.
    let again = DumpOptions { resume: Resume::Continue, ..archive_options(&path, Compression::None) };
    dump(&with(Fault::None), &again).expect("gone on");
    assert_eq!(read_archive(&path)["shop.log"].len(), 400);
}

#[test]
fn metadata_is_as_the_classic_tool_writes_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = DocumentBuf::new().with("viewOn", "log").with("pipeline", &bunko_bson::ArrayBuf::new());
    let listed = DocumentBuf::new().with("name", "recent days").with("type", "view").with("options", &options);
    let view = Collection { listed, indexes: Vec::new(), ..Collection::numbered("shop", "", 7, 1) };
    let series =
        DocumentBuf::new().with("name", "t").with("type", "timeseries").with("options", DocumentBuf::new().as_ref());
    let series = Collection { listed: series, ..Collection::numbered("shop", "t", 0, 0) };
    let buckets = Collection::numbered("shop", "system.buckets.t", 5, 1);
    let shelf = Shelf { collections: Arc::new(vec![capped(), view, series, buckets]), ..Shelf::default() };
    let root = directory.path().join("classic");
    let mut options =
        DumpOptions { database: Some("shop".into()), ..DumpOptions::new(Output::Directory(root.clone())) };
    dump(&shelf, &options).expect("dumped");
    let text = |name: &str| std::fs::read_to_string(root.join("shop").join(name)).expect("the file");
    assert_eq!(
        text("log.metadata.json"),
        r#"{"options":{"capped":true,"size":{"$numberInt":"1048576"}},"indexes":[{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_"}],"uuid":"abababababababababababababababab","collectionName":"log","type":"collection"}"#
    );
    assert_eq!(
        text("recent+days.metadata.json"),
        r#"{"options":{"viewOn":"log","pipeline":[]},"indexes":[],"collectionName":"recent days","type":"view"}"#
    );
    assert!(!root.join("shop/recent+days.bson").exists());
    assert!(text("prelude.json").starts_with(r#"{"ServerVersion":"8.0.0","ToolVersion":"bunko "#));
    assert!(text("t.metadata.json").contains(r#""collectionName":"t","type":"timeseries""#));
    assert_eq!(ids(text("system.buckets.t.bson").as_bytes()).len(), 5);
    assert!(!root.join("shop/system.buckets.t.metadata.json").exists());

    // The classic tool looks for the series under its own name, and for its blocks under its buckets' name.
    let path = directory.path().join("series.archive");
    options.output = Output::Archive(ArchiveTarget::File(path.clone()));
    dump(&shelf, &options).expect("dumped");
    let (prelude, _) =
        Reader::open(std::io::BufReader::new(std::fs::File::open(&path).expect("there"))).expect("sound");
    let series = prelude.namespaces.iter().find(|entry| entry.kind == "timeseries").expect("a series");
    assert_eq!(series.collection, "t");
    assert_eq!(read_archive(&path)["shop.system.buckets.t"].len(), 5);

    let root = directory.path().join("materialised");
    options.output = Output::Directory(root.clone());
    options.views = Views::AsCollections;
    options.users_and_roles = UsersAndRoles::With;
    dump(&shelf, &options).expect("dumped");
    let contents = read_directory(&root);
    assert_eq!(contents["shop.recent days"].len(), 7);
    let names: Vec<_> = contents.keys().map(String::as_str).collect();
    let authorisation = ["shop.$admin.system.roles", "shop.$admin.system.users", "shop.$admin.system.version"];
    assert_eq!(names, [&authorisation[..], &["shop.recent days"]].concat());
}

#[test]
fn a_collection_that_is_named_has_to_exist() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = archive_options(&directory.path().join("a"), Compression::None);
    options.database = Some("shop".into());
    options.collection = Some("nothing".into());
    let error = dump(&shelf(Fault::None), &options).expect_err("refused");
    assert_eq!(error.to_string(), "shop.nothing does not exist");
    let views = DumpOptions { collection: Some("small".into()), views: Views::AsCollections, ..options.clone() };
    let error = dump(&shelf(Fault::None), &views).expect_err("no view").to_string();
    assert!(error.contains("--viewsAsCollections dumps views alone"), "{error}");
    options.collection = Some("small".into());
    options.query = Some(DocumentBuf::new().with("_id", &DocumentBuf::new().with("$lt", 5)));
    let summary = dump(&shelf(Fault::None), &options).expect("dumped");
    assert_eq!((summary.collections.len(), summary.collections[0].documents), (1, 5));
}

#[test]
fn a_secondary_is_told_with_every_read_that_it_may_serve_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dump.archive");
    let large = Collection { size_claimed: GIB, ..Collection::numbered("shop", "large", 900, 20_000) };
    let secondary = Shelf {
        collections: Arc::new(vec![large, oplog(1..11)]),
        read_preference: Some(DocumentBuf::new().with("mode", "primaryPreferred")),
        ..Shelf::default()
    };
    let threads = NonZeroUsize::new(8).expect("not zero");
    let options = DumpOptions { oplog: OplogMode::With, threads, ..archive_options(&path, Compression::None) };
    dump(&secondary, &options).expect("dumped");
    let contents = read_archive(&path);
    assert_eq!((contents["shop.large"].len(), contents[".oplog"].as_slice()), (900, &[10][..]));
}

fn oplog(seconds: std::ops::Range<u32>) -> Collection {
    let entry =
        |seconds: u32| DocumentBuf::new().with("_id", seconds as i32).with("ts", Timestamp { seconds, increment: 1 });
    Collection { documents: seconds.map(entry).collect(), ..Collection::numbered("local", "oplog.rs", 0, 0) }
}

#[test]
fn the_oplog_is_dumped_from_the_newest_entry_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("dump.archive");
    let options = DumpOptions { oplog: OplogMode::With, ..archive_options(&path, Compression::None) };
    let collections = || vec![Collection::numbered("shop", "small", 50, 10)];
    let mut with_oplog = collections();
    with_oplog.push(oplog(1..11));
    let summary = dump(&Shelf { collections: Arc::new(with_oplog), ..Shelf::default() }, &options).expect("dumped");
    assert_eq!(summary.oplog_entries, Some(1));
    let contents = read_archive(&path);
    assert_eq!(contents[".oplog"], [10]);
    assert_eq!(contents.keys().collect::<Vec<_>>(), [".oplog", "shop.small"]);

    let without = Shelf { collections: Arc::new(collections()), ..Shelf::default() };
    let message = dump(&without, &options).expect_err("no oplog").to_string();
    assert!(message.contains("keeps no oplog"), "{message}");

    // Interrupted, and resumed when the oplog has moved on: the dump reaches the new end, or is refused.
    let mut first = vec![Collection::numbered("shop", "large", 300, 20_000)];
    first.push(oplog(1..11));
    let first = Shelf { collections: Arc::new(first), fault: Fault::InterruptAt(2), ..Shelf::default() };
    for (now, expected) in [(5..31, Ok((10..31).collect())), (20..31, Err("no longer holds"))] {
        first.interrupted.store(false, std::sync::atomic::Ordering::Relaxed);
        first.batches.store(0, std::sync::atomic::Ordering::Relaxed);
        dump(&first, &options).expect_err("interrupted");
        let mut later = vec![Collection::numbered("shop", "large", 300, 20_000)];
        later.push(oplog(now));
        let later = Shelf { collections: Arc::new(later), ..Shelf::default() };
        let again = DumpOptions { resume: Resume::Continue, ..options.clone() };
        match (dump(&later, &again), expected) {
            (Ok(_), Ok(expected)) => assert_eq!(read_archive(&path)[".oplog"], Vec::<i32>::clone(&expected)),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (result, _) => panic!("{result:?}"),
        }
    }
}
