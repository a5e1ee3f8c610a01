//! Dumps are restored unchanged: mongodump's into our server, and ours into our server and through other readers.

use crate::peer::{self, Running};
use crate::tool::{
    self, archive, collections, connect, documents, drop_database, fail, fixture, insert, succeed, text,
};
use bunko_bson::{DocumentBuf, ObjectId, number};
use bunko_client::Connection;
use bunko_testkit::process::exit_of;
use std::fs;
use std::process::{Command, Stdio};

fn numbered(count: i32, padding: usize) -> Vec<DocumentBuf> {
    let document = |number: i32| {
        DocumentBuf::new()
            .with("_id", number)
            .with("n", i64::from(number) * 7)
            .with("pad", "x".repeat(padding).as_str())
    };
    (0..count).map(document).collect()
}

/// All collections of a database with their documents.
fn contents(connection: &mut Connection, database: &str) -> Vec<(String, Vec<DocumentBuf>)> {
    let names = collections(connection, database);
    names.into_iter().map(|name| (name.clone(), documents(connection, database, &name))).collect()
}

#[test]
fn dumps_of_mongodump_are_restored_in_all_three_forms() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let forms = [archive(&fixture("fixture.archive")), archive(&fixture("fixture.archive.gz"))];
    let directory = fixture("directory");
    let mut seen = Vec::new();
    for form in forms.iter().map(String::as_str).chain([text(&directory)]) {
        let state = tempfile::NamedTempFile::new().expect("a temporary file");
        succeed("restore", running.address(), &["--drop", form, "--resumeFile", text(state.path())]);
        let indexes = running.peer().text("fixture", "{listIndexes: 'numbers'}");
        assert!(indexes.contains("name: \"text_s\"") && indexes.contains("_fts: \"text\""), "{indexes}");
        seen.push(contents(&mut connection, "fixture"));
        drop_database(&mut connection, "fixture");
    }
    assert!(seen[0] == seen[1] && seen[0] == seen[2]);
    let counts: Vec<_> = seen[0].iter().map(|(name, documents)| (name.as_str(), documents.len())).collect();
    let long = "q".repeat(90);
    assert_eq!(
        counts,
        [
            ("capped", 50),
            ("collated", 5),
            ("empty", 0),
            ("large", 3),
            ("numbers", 2000),
            ("odd%name", 3),
            (long.as_str(), 3),
            ("slash/in", 3),
            ("system.views", 1),
            ("types", 29),
            ("uniq", 100),
            ("validated", 1),
            ("view_k", 210),
            ("with space", 3),
            ("with.dots.in", 3),
            ("日本語", 3)
        ]
    );
}

#[test]
fn a_replayed_oplog_ends_at_one_moment() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let state = tempfile::NamedTempFile::new().expect("a temporary file");
    let bank = archive(&fixture("bank.oplog.archive"));
    let balances = |connection: &mut Connection| -> (usize, i64) {
        let accounts = documents(connection, "bank", "accounts");
        let balance = |account: &DocumentBuf| number::as_i64_exact(account.as_ref().get("balance").expect("a balance"));
        (accounts.len(), accounts.iter().map(|account| balance(account).expect("a whole number")).sum())
    };
    // The dump was made during transfers: its collections and documents are from different moments.
    succeed("restore", running.address(), &[&bank, "--resumeFile", text(state.path())]);
    assert_ne!(balances(&mut connection), (200, 20_000));
    let replay = [bank.as_str(), "--drop", "--oplogReplay", "--resumeFile", text(state.path())];
    let said = succeed("restore", running.address(), &replay);
    assert!(said.contains("oplog entries applied"), "{said}");
    assert_eq!(balances(&mut connection), (200, 20_000));
}

#[test]
fn a_round_trip_changes_nothing_in_any_form() {
    let running = Running::start();
    let mut connection = connect(running.address());
    let state = tempfile::NamedTempFile::new().expect("a temporary file");
    let types = archive(&fixture("fixture.archive"));
    succeed("restore", running.address(), &[&types, "--nsInclude=fixture.types", "--resumeFile", text(state.path())]);
    insert(&mut connection, "fixture", "many", &numbered(20_000, 500));
    let large = DocumentBuf::new().with("_id", ObjectId([7; 12])).with("pad", "y".repeat(16_000_000).as_str());
    insert(&mut connection, "fixture", "large", &[large.clone(), large.with("_id", 2)][..1]);
    for name in ["100%", "a/b", "日本語 名", &"n".repeat(240), "with.dots"] {
        insert(&mut connection, "fixture", name, &numbered(3, 10));
    }
    let indexes = "{createIndexes: 'many', indexes: [{key: {n: 1, pad: -1}, name: 'compound'}, {key: {n: -1}, name: 'down', unique: true}]}";
    assert!(running.peer().text("fixture", indexes).contains("ok: 1.0"));
    let before = contents(&mut connection, "fixture");
    let directory = tempfile::tempdir().expect("a temporary directory");
    for compression in [None, Some("--gzip"), Some("--zstd"), Some("--zstd=9"), Some("--lz4")] {
        let file = directory.path().join("archive");
        let files = directory.path().join("files");
        let as_archive = archive(&file);
        for (to, from) in
            [(vec![as_archive.as_str()], as_archive.as_str()), (vec!["--out", text(&files)], text(&files))]
        {
            let dump: Vec<_> = ["--db", "fixture"].into_iter().chain(to).chain(compression).collect();
            succeed("dump", running.address(), &dump);
            drop_database(&mut connection, "fixture");
            let said = succeed("restore", running.address(), &[from, "--verify"]);
            assert!(said.contains("verified"), "{compression:?} {from}: {said}");
            assert!(contents(&mut connection, "fixture") == before, "{compression:?} {from}");
        }
        check_with_other_readers(&file, compression);
        fs::remove_dir_all(&files).expect("removed");
    }
}

/// Common programs can read our compressed files; a missing program is reported.
fn check_with_other_readers(file: &std::path::Path, compression: Option<&str>) {
    let program = match compression {
        Some("--gzip") => "gzip",
        Some("--lz4") => "lz4",
        Some(_) => "zstd",
        None => return,
    };
    let input = fs::File::open(file).expect("there");
    match Command::new(program).arg("-t").stdin(input).stderr(Stdio::null()).stdout(Stdio::null()).status() {
        Ok(status) => assert!(status.success(), "{program} -t: {status}"),
        Err(error) => println!("SKIPPED {program} -t: {error}"),
    }
}

#[test]
fn archives_stream_through_pipes() {
    let running = Running::start();
    let mut connection = connect(running.address());
    insert(&mut connection, "pipe", "c", &numbered(5_000, 200));
    let before = contents(&mut connection, "pipe");
    let mut dump = tool::command("dump", running.address(), &["--db", "pipe", "--archive", "--zstd", "--quiet"]);
    let mut dump = dump.stdout(Stdio::piped()).spawn().expect("the tool runs");
    let stream = dump.stdout.take().expect("piped");
    let rename = ["--archive", "--nsFrom", "pipe.*", "--nsTo", "other.*", "--quiet"];
    let restore = tool::command("restore", running.address(), &rename).stdin(stream).status().expect("the tool runs");
    assert!(restore.success() && dump.wait().expect("ends").success());
    assert!(contents(&mut connection, "other") == before);
}

/// A reader of a pipe takes its first closing for the end.
#[test]
fn a_pipe_with_a_name_is_opened_once() {
    let running = Running::start();
    let mut connection = connect(running.address());
    insert(&mut connection, "pipe", "c", &numbered(5_000, 200));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("coreutils").success());
    let rename = ["--nsFrom", "pipe.*", "--nsTo", "other.*", "--verify"];
    let mut restore = tool::command("restore", running.address(), &rename);
    let mut restore = restore.arg(archive(&pipe)).stderr(Stdio::null()).spawn().expect("the tool runs");
    let mut dump = tool::command("dump", running.address(), &["--db", "pipe", "--quiet", &archive(&pipe)]);
    let mut dump = dump.spawn().expect("the tool runs");
    // A dump whose pipe has no reader any more does not end.
    assert!(exit_of(&mut dump).success() && exit_of(&mut restore).success());
    assert!(contents(&mut connection, "other") == contents(&mut connection, "pipe"));
}

/// Documents of 884 bytes each that lz4 compresses 3.9 to 1: the handbook's figures state this.
#[test]
fn the_documents_behind_the_figures_are_as_the_handbook_says() {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dump-restore-documents.py");
    let made = match Command::new("python3").arg(&script).arg("20000").output() {
        Ok(output) => output,
        Err(error) => return println!("SKIPPED {}: python3: {error}", script.display()),
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (bson, file) = (directory.path().join("documents.bson"), directory.path().join("archive"));
    fs::write(&bson, &made.stdout).expect("written");
    let running = Running::start();
    succeed("restore", running.address(), &["--db=test", "--collection=documents", "--verify", text(&bson)]);
    let found = documents(&mut connect(running.address()), "test", "documents");
    assert_eq!(found.len(), 20_000);
    assert!(found.iter().all(|document| document.as_ref().len_bytes() == 884));
    let names: Vec<_> = found[0].as_ref().iter().map(|field| field.name.to_owned()).collect();
    assert_eq!(names, ["_id", "n", "k", "g", "text"]);
    succeed("dump", running.address(), &["--db=test", "--lz4", &archive(&file)]);
    let ratio = made.stdout.len() as f64 / fs::metadata(&file).expect("there").len() as f64;
    assert!((3.7..4.1).contains(&ratio), "{ratio}");
}

#[test]
fn a_directory_is_dumped_and_restored_without_a_server() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    let file = directory.path().join("archive");
    let tool = |arguments: &[&str]| {
        let output = Command::new(peer::binary()).args(arguments).output().expect("the tool runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let types = archive(&fixture("fixture.archive"));
    let state = directory.path().join("state");
    tool(&["restore", "--dbpath", text(&one), &types, "--nsInclude=fixture.types", "--resumeFile", text(&state)]);
    tool(&["dump", "--dbpath", text(&one), &archive(&file), "--lz4"]);
    tool(&["restore", "--dbpath", text(&other), &archive(&file), "--verify"]);
    let read = |dbpath: &std::path::Path| {
        let server = bunko_testkit::process::Server::start(&peer::binary(), dbpath, &[]).expect("the server starts");
        contents(&mut connect(server.address()), "fixture")
    };
    let restored = read(&other);
    assert_eq!(restored[0].1.len(), 29);
    assert!(restored == read(&one));
}

#[test]
fn a_damaged_archive_is_refused_at_its_place_and_says_what_was_restored() {
    let running = Running::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let whole = fs::read(fixture("fixture.archive")).expect("there");
    let file = directory.path().join("damaged");
    let damage = |bytes: &[u8], words: &str| {
        fs::write(&file, bytes).expect("written");
        let said = fail("restore", running.address(), &["--drop", &archive(&file), "--nsInclude=fixture.*"]);
        assert!(said.contains(words) && said.contains("document(s) restored"), "'{words}' is not in: {said}");
        let state = directory.path().join("damaged.restore-resume");
        let _ = fs::remove_file(state);
    };
    damage(&whole[..whole.len() / 2], "damaged at offset");
    let mut flipped = whole.clone();
    // A byte in the middle of the three long documents: only the checksum covers their text.
    let at =
        whole.windows(64).position(|window| window.iter().all(|byte| *byte == window[0] && byte.is_ascii_alphabetic()));
    flipped[at.expect("a long text") + 5_000] ^= 1;
    damage(&flipped, "damaged at offset");
    let mut lying = whole;
    lying.truncate(60_000);
    lying.extend_from_slice(&[0xff; 64]);
    damage(&lying, "damaged at offset");
    running.assert_serves();
}

#[test]
fn names_that_lead_out_of_a_directory_are_refused() {
    let running = Running::start();
    let mut connection = connect(running.address());
    insert(&mut connection, "paths", "x/../../up", &numbered(2, 1));
    insert(&mut connection, "paths", "/root", &numbered(2, 1));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let out = directory.path().join("a/b/dump");
    succeed("dump", running.address(), &["--db", "paths", "--out", text(&out)]);
    let entries = |path: &std::path::Path| fs::read_dir(path).expect("there").count();
    assert_eq!((entries(&directory.path().join("a")), entries(&out)), (1, 1));
    let before = contents(&mut connection, "paths");
    succeed("restore", running.address(), &["--drop", text(&out), "--verify"]);
    assert!(contents(&mut connection, "paths") == before);
}

#[test]
fn flags_that_mean_nothing_together_are_refused() {
    let running = Running::start();
    for (tool, flags, words) in [
        ("dump", &["--archive=x", "--query={", "--db=a", "--collection=b"][..], "--query"),
        ("dump", &["--oplog", "--db", "a"][..], "--oplog"),
        ("restore", &["/nonexistent/dump"][..], "/nonexistent/dump"),
        ("restore", &["--archive=/nonexistent"][..], "/nonexistent"),
        ("restore", &["--writeConcern={\"w\": 99}", "."][..], "'w' cannot be 99"),
        ("restore", &["--nsFrom=a.*", "."][..], "nsTo"),
    ] {
        let said = fail(tool, running.address(), flags);
        assert!(said.contains(words), "{tool} {flags:?}: {said}");
    }
}
