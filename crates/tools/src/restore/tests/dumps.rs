//! Archives and directories that the tests make, and the commands after their documents.

use super::*;
use bunko_archive::archive::{Header, NamespaceEntry, Prelude, begin_block, end_block, end_of_namespace};
use bunko_archive::compression::{Compression, Writer};
use bunko_archive::{crc64, index};
use bunko_bson::{Timestamp, ValueRef};
use bunko_host::Clock;
use bunko_testkit::random::scramble;
use std::sync::atomic::Ordering;

/// An archive of namespaces one after another, with a unit for each block.
fn archive(namespaces: &[(&str, &str, Vec<u8>)], compression: Compression) -> Vec<u8> {
    let entries = namespaces.iter().map(|(database, collection, _)| NamespaceEntry {
        database: (*database).to_owned(),
        collection: (*collection).to_owned(),
        ..NamespaceEntry::default()
    });
    let prelude = Prelude { header: Header::default(), namespaces: entries.collect() };
    let mut writer = Writer::new(Vec::new(), compression, NonZeroUsize::MIN);
    writer.write_unit(prelude.encode(), index::NO_TAG).expect("written");
    for (database, collection, documents) in namespaces {
        let tag = writer.tag(database, collection);
        let mut unit = Vec::new();
        begin_block(&mut unit, database, collection);
        unit.extend(documents);
        end_block(&mut unit);
        end_of_namespace(&mut unit, database, collection, crc64::checksum(documents));
        writer.write_unit(unit, tag).expect("written");
    }
    writer.finish().expect("finished")
}

fn encoded(json: &[&str]) -> Vec<u8> {
    json.iter().flat_map(|json| parse_document(json).expect("JSON").into_bytes()).collect()
}

/// Documents that hardly compress.
fn noise(count: u64) -> Vec<u8> {
    let document = |id: u64| {
        let bytes: Vec<u8> = (0..64).flat_map(|n| scramble(id * 64 + n).to_le_bytes()).collect();
        DocumentBuf::new().with("_id", id as i64).with("x", ValueRef::Binary { subtype: 0, bytes: &bytes }).into_bytes()
    };
    (0..count).flat_map(document).collect()
}

fn of_archive(directory: &tempfile::TempDir, bytes: &[u8]) -> RestoreOptions {
    let path = directory.path().join("dump.archive");
    fs::write(&path, bytes).expect("written");
    RestoreOptions::new(Source::Archive(ArchiveSource::File(path)))
}

#[test]
fn only_needed_parts_of_a_seekable_archive_are_read() {
    let directory = tempfile::tempdir().expect("directory");
    let namespaces = [("a", "big", noise(4000)), ("a", "small", noise(3)), ("b", "big", noise(4000))];
    for compression in [Compression::Zstd { level: 1 }, Compression::Lz4, Compression::Gzip] {
        let mut bytes = archive(&namespaces, compression);
        let whole = bytes.len() as u64;
        // Damage in units that are not read is not noticed.
        bytes[whole as usize / 3] ^= 0x55;
        let mut options = of_archive(&directory, &bytes);
        options.mode = Mode::DryRun;
        assert!(Scripted::default().restore(&options).is_err(), "{compression:?}");
        options.filter = crate::namespaces::Filter::default().with(Some("a"), Some("small"));
        let progress = Arc::new(Progress::new(Clock::machine()));
        let summary = run(&Scripted::default(), &options, &progress, &Interrupted::default());
        assert_eq!(summary.map_err(|error| error.to_string()).expect("read").documents(), 3, "{compression:?}");
        assert!(progress.source_bytes_expected.load(Ordering::Relaxed) < whole / 100, "{compression:?}");
    }
}

const OPLOG: [&str; 5] = [
    r#"{"ts":{"$timestamp":{"t":5,"i":1}},"op":"i","ns":"a.b","o":{"_id":2}}"#,
    r#"{"ts":{"$timestamp":{"t":5,"i":2}},"op":"n","ns":"","o":{}}"#,
    r#"{"ts":{"$timestamp":{"t":5,"i":3}},"op":"c","ns":"admin.$cmd","lsid":{"id":1},"txnNumber":1,
        "o":{"applyOps":[{"op":"d","ns":"a.b","o":{"_id":1}}]}}"#,
    r#"{"ts":{"$timestamp":{"t":6,"i":1}},"op":"c","ns":"a.$cmd","o":{"create":"c"}}"#,
    r#"{"ts":{"$timestamp":{"t":6,"i":2}},"op":"c","ns":"a.$cmd","o":{"createIndexes":"b","key":{"x":1},"name":"x_1"}}"#,
];

#[test]
fn an_oplog_is_applied_behind_the_documents_and_indexes_behind_it() {
    let directory = tempfile::tempdir().expect("directory");
    let namespaces = [("a", "b", encoded(&[r#"{"_id":1}"#])), ("", "oplog", encoded(&OPLOG))];
    let mut options = of_archive(&directory, &archive(&namespaces, Compression::Zstd { level: 1 }));
    options.insertion_workers = Some(NonZeroUsize::MIN);
    let replayed = |options: &RestoreOptions, script: &str| {
        let script = format!("> listCommands\n> {{\"create\":\"b\"\n> insert\n< {{\"ok\": 1, \"n\": 1}}\n{script}");
        let server = Scripted::new(&script);
        let summary = server.restore(options).map_err(|error| error.to_string());
        server.check(&script);
        summary.map(|summary| summary.oplog_entries)
    };
    options.oplog = Oplog::Replay { limit: None, file: None };
    let operations = r#"> admin {"applyOps":[{"op":"i","ns":"a.b","o":{"_id":2}},{"op":"d","ns":"a.b","o":{"_id":1}}],"writeConcern":{"w":1}}"#;
    let create = r#"> admin {"applyOps":[{"op":"c","ns":"a.$cmd","o":{"create":"c"}}],"#;
    let index = r#"> a {"createIndexes":"b","indexes":[{"key":{"x":1},"name":"x_1"}]"#;
    let taken = "< {\"ok\": 0, \"code\": 48, \"errmsg\": \"it is there\"}";
    assert_eq!(replayed(&options, &format!("{operations}\n{create}\n{taken}\n{index}\n")), Ok(3));

    options.indexes = Indexes::Skip;
    assert_eq!(replayed(&options, &format!("{operations}\n{create}\n{taken}\n")), Ok(3));
    options.indexes = Indexes::Restore;

    options.oplog = Oplog::Replay { limit: Some(Timestamp { seconds: 6, increment: 1 }), file: None };
    assert_eq!(replayed(&options, operations), Ok(2));

    let refused = "< {\"ok\": 0, \"code\": 13, \"errmsg\": \"no\"}";
    let error = replayed(&options, &format!("{operations}\n{refused}\n")).expect_err("refused");
    let expected = "the server refuses to apply the oplog entries at 5:1 to 5:3: no (code 13)";
    assert!(error.starts_with(expected), "{error}");

    options.filter = crate::namespaces::Filter::default().with(Some("nothing"), None);
    let nothing = Scripted::new("> listCommands");
    assert_eq!(nothing.restore(&options).expect("restored").oplog_entries, 0);
}

#[test]
fn a_dump_without_an_oplog_cannot_be_replayed() {
    let directory = tempfile::tempdir().expect("directory");
    let mut options = of_archive(&directory, &archive(&[("a", "b", Vec::new())], Compression::None));
    options.oplog = Oplog::Replay { limit: None, file: None };
    let refused = |options: &RestoreOptions| {
        let server = Scripted::new("> listCommands");
        let error = server.restore(options).expect_err("none").to_string();
        server.check("nothing is restored first");
        error
    };
    let error = refused(&options);
    assert!(error.starts_with("the dump has no oplog to replay"), "{error}");
    options.oplog = Oplog::Replay { limit: None, file: Some(directory.path().join("nothing")) };
    assert!(refused(&options).contains("nothing: No such file"));
    let two = archive(&[("a", "b", Vec::new()), ("", "oplog", encoded(&OPLOG))], Compression::None);
    let mut options = of_archive(&directory, &two);
    options.oplog = Oplog::Replay { limit: None, file: Some(directory.path().join("other")) };
    let error = refused(&options);
    assert!(error.starts_with("the dump has an oplog, and --oplogFile names another"), "{error}");
}

#[test]
fn a_file_of_entries_is_replayed_alone() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("entries.bson");
    fs::write(&path, encoded(&OPLOG)).expect("written");
    let with = |mode: Mode, oplog: Oplog| RestoreOptions { mode, oplog, ..RestoreOptions::new(Source::Absent) };
    let replay = Oplog::Replay { limit: None, file: Some(path.clone()) };
    let before = Oplog::Replay { limit: Some(Timestamp { seconds: 1, increment: 0 }), file: Some(path.clone()) };
    assert!(Scripted::default().restore(&with(Mode::DryRun, replay.clone())).is_ok());
    let error = with(Mode::Restore, Oplog::None).validate().expect_err("nothing to do").to_string();
    assert!(error.contains("--oplogFile"), "{error}");
    let resume = ResumeFile { path: directory.path().join("state"), mode: Resume::Continue };
    let resumed = RestoreOptions { resume: Some(resume), ..with(Mode::Restore, replay) };
    assert!(resumed.validate().expect_err("no state").to_string().contains("--resume"));
    let server = Scripted::new("> listCommands");
    assert_eq!(server.restore(&with(Mode::Restore, before)).expect("replayed").oplog_entries, 0);
    server.check("nothing is before the limit");
}

#[test]
fn the_collection_of_an_oplog_is_replayed_where_there_is_no_other() {
    let directory = tempfile::tempdir().expect("directory");
    fs::create_dir_all(directory.path().join("local")).expect("made");
    fs::write(directory.path().join("local/oplog.rs.bson"), encoded(&OPLOG)).expect("written");
    let source = Source::Directory { path: directory.path().to_owned(), database: None };
    let oplog = Oplog::Replay { limit: Some(Timestamp { seconds: 1, increment: 0 }), file: None };
    let options = RestoreOptions { oplog, ..RestoreOptions::new(source) };
    let server = Scripted::new("> listCommands");
    assert_eq!(server.restore(&options).expect("replayed").namespaces, []);
    server.check("it is not restored as a collection");
}

#[test]
fn a_dry_run_reads_the_oplog_too() {
    let directory = tempfile::tempdir().expect("directory");
    let rehearse = |oplog: &[&str]| {
        let namespaces = [("a", "b", encoded(&[r#"{"_id":1}"#])), ("", "oplog", encoded(oplog))];
        let mut options = of_archive(&directory, &archive(&namespaces, Compression::None));
        options.mode = Mode::DryRun;
        options.oplog = Oplog::Replay { limit: None, file: None };
        Scripted::default().restore(&options).map_err(|error| error.to_string())
    };
    assert!(rehearse(&OPLOG).expect("sound").is_clean());
    let error = rehearse(&[OPLOG[0], r#"{"op":"i","ns":"a.b","o":{"_id":3}}"#]).expect_err("no time");
    assert!(error.starts_with("an oplog entry without a timestamp"), "{error}");
}

#[test]
fn collections_that_the_server_refused_get_nothing_from_the_oplog() {
    let directory = tempfile::tempdir().expect("directory");
    let namespaces = [("a", "b", encoded(&[r#"{"_id":1}"#])), ("", "oplog", encoded(&OPLOG[..1]))];
    let mut options = of_archive(&directory, &archive(&namespaces, Compression::None));
    options.oplog = Oplog::Replay { limit: None, file: None };
    let server = Scripted::new("> listCommands\n> create\n< {\"ok\": 0, \"code\": 115, \"errmsg\": \"capped\"}");
    let summary = server.restore(&options).expect("told in the summary");
    server.check("no applyOps");
    assert_eq!((summary.oplog_entries, summary.is_clean()), (0, false));
}

/// A time series as the classic tool dumps it: its own name in the prelude, its buckets' name in blocks.
#[test]
fn a_time_series_bears_its_own_name_whatever_the_dump_calls_it() {
    let directory = tempfile::tempdir().expect("directory");
    let documents = encoded(&[r#"{"_id":1,"control":{"version":1}}"#]);
    for name in ["t", "system.buckets.t"] {
        let entry = NamespaceEntry {
            database: "a".to_owned(),
            collection: name.to_owned(),
            metadata: r#"{"options":{"timeseries":{"timeField":"at"}},"type":"timeseries"}"#.to_owned(),
            kind: "timeseries".to_owned(),
            ..NamespaceEntry::default()
        };
        let mut bytes = Prelude { header: Header::default(), namespaces: vec![entry] }.encode();
        begin_block(&mut bytes, "a", "system.buckets.t");
        bytes.extend(&documents);
        end_block(&mut bytes);
        end_of_namespace(&mut bytes, "a", "system.buckets.t", crc64::checksum(&documents));
        let options = of_archive(&directory, &bytes);
        let server = Scripted::new(
            "> listCommands\n> a {\"create\":\"t\",\"timeseries\":{\"timeField\":\"at\"}\n\
             > a {\"insert\":\"system.buckets.t\"\n< {\"ok\": 1, \"n\": 1}",
        );
        let summary = server.restore(&options).expect("restored");
        server.check(name);
        assert_eq!((summary.namespaces[0].target.as_str(), summary.documents()), ("a.t", 1), "{name}");
    }
}

#[test]
fn a_dump_that_is_not_finished_is_refused() {
    let directory = tempfile::tempdir().expect("directory");
    let root = directory.path().join("dump");
    fs::create_dir_all(root.join("a")).expect("made");
    fs::write(root.join("a/b.bson"), encoded(&[r#"{"_id":1}"#])).expect("written");
    fs::write(root.join("oplog.bson"), encoded(&OPLOG)).expect("written");
    let state = root.join(".bunko-resume");
    let file = Source::File { path: root.join("a/b.bson"), database: "a".to_owned(), collection: "b".to_owned() };
    let sources = [
        Source::Directory { path: root.clone(), database: None },
        Source::Directory { path: root.join("a"), database: Some("a".to_owned()) },
        file,
    ];
    for mode in [Mode::Restore, Mode::DryRun, Mode::List] {
        for source in &sources {
            let options = RestoreOptions { mode, ..RestoreOptions::new(source.clone()) };
            fs::write(&state, "").expect("written");
            let server = Scripted::new(if mode == Mode::Restore { "> listCommands" } else { "" });
            let error = server.restore(&options).expect_err("unfinished").to_string();
            server.check("nothing is restored");
            assert!(error.contains("is not finished") && error.contains(".bunko-resume"), "{error}");
            fs::remove_file(&state).expect("removed");
            if mode != Mode::Restore {
                assert!(Scripted::default().restore(&options).is_ok());
            }
        }
    }
    let mut options = of_archive(&directory, &archive(&[("a", "b", Vec::new())], Compression::None));
    options.mode = Mode::List;
    options.oplog = Oplog::Replay { limit: None, file: Some(root.join("oplog.bson")) };
    assert!(Scripted::default().restore(&options).is_ok());
    fs::write(&state, "").expect("written");
    assert!(Scripted::default().restore(&options).is_err_and(|error| error.to_string().contains("not finished")));
    options.oplog = Oplog::None;
    fs::write(directory.path().join("dump.archive.resume"), "").expect("written");
    let error = Scripted::default().restore(&options).expect_err("unfinished").to_string();
    assert!(error.contains("dump.archive.resume says how far it is"), "{error}");
}

#[test]
fn users_are_merged_or_told_of() {
    let directory = tempfile::tempdir().expect("directory");
    fs::create_dir(directory.path().join("admin")).expect("created");
    fs::write(directory.path().join("admin/system.users.bson"), encoded(&[r#"{"_id":"a.u"}"#])).expect("written");
    let source = Source::Directory { path: directory.path().to_owned(), database: None };
    let mut options = RestoreOptions::new(source);
    let documents = "> listCommands\n> admin {\"drop\":\"tempusers\"}\n> admin {\"create\":\"tempusers\"\n\
                     > admin {\"insert\":\"tempusers\"\n< {\"ok\": 1, \"n\": 1}\n";
    let merge = |database: &str| {
        format!(
            "> admin {{\"_mergeAuthzCollections\":1,\"tempUsersCollection\":\"admin.tempusers\",\
             \"tempRolesCollection\":\"\",\"drop\":false,\"db\":\"{database}\",\"writeConcern\":{{\"w\":\"majority\"}}}}\n"
        )
    };
    let (unknown, drop) = ("< {\"ok\": 0, \"code\": 59}\n", "> admin {\"drop\":\"tempusers\"}");
    let server = Scripted::new(&format!("{documents}{}{unknown}{drop}", merge("")));
    let summary = server.restore(&options).expect("a warning");
    assert_eq!(summary.warnings, ["the server has no users and roles: those of the dump were not restored"]);
    server.check("warned");

    options.users_and_roles = UsersAndRoles::Of { database: "a".to_owned() };
    let server = Scripted::new(&format!("{documents}{}{unknown}{drop}", merge("a")));
    assert!(server.restore(&options).is_err(), "they were asked for");
    server.check("refused");
}

#[test]
fn users_that_the_dump_does_not_have_are_missed_before_anything_is_restored() {
    let directory = tempfile::tempdir().expect("directory");
    let mut options = of_archive(&directory, &archive(&[("a", "b", Vec::new())], Compression::None));
    options.users_and_roles = UsersAndRoles::Of { database: "a".to_owned() };
    let server = Scripted::new("> listCommands");
    let error = server.restore(&options).expect_err("there are none").to_string();
    server.check("nothing is restored");
    assert!(error.starts_with("the dump has no users and roles of the database 'a'"), "{error}");
}

#[test]
fn namespaces_that_cannot_be_restored_together_are_refused() {
    let directory = tempfile::tempdir().expect("directory");
    let namespaces = [("a", "b", Vec::new()), ("a", "c", Vec::new())];
    let mut options = of_archive(&directory, &archive(&namespaces, Compression::None));
    options.mode = Mode::DryRun;
    let one = ["a.*".to_owned()];
    options.renames = crate::namespaces::Renames::new(&one, &["z*.z".to_owned()]).expect("valid");
    assert!(Scripted::default().restore(&options).is_ok());
    options.renames = crate::namespaces::Renames::new(&["a.$x$".to_owned()], &["z.z".to_owned()]).expect("valid");
    let error = Scripted::default().restore(&options).expect_err("both").to_string();
    assert!(error.starts_with("a.b and a.c would both become z.z"), "{error}");
    options.uuids = Uuids::Preserve;
    assert!(Scripted::default().restore(&options).is_err_and(|error| matches!(error.cause, ToolError::Usage(_))));
}
