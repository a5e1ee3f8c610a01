//! A flipped byte in any file is found when it is read: the start is refused or a command fails, the file is named, and
//! wrong data is never returned.

use crate::oracle::{connect, durable_engines};
use crate::peer::binary;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, check_reply};
use bunko_testkit::directory::files_below;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const DATABASE: &str = "damage";
const DOCUMENTS: i32 = 400;
/// Documents that are written after all others have left the log.
const LATE_DOCUMENTS: i32 = 40;
/// Bytes that are flipped in each file, one at a time.
const FLIPS: usize = 6;
/// Blocks of a file that are looked at, about.
const BLOCKS_MAX: usize = 1 << 16;
/// Lock files, which have no content and are made anew at every start.
const LOCKS: [&str; 2] = ["bunko.lock", "lock.mdb"];

fn start(engine: &str, dbpath: &Path) -> Result<Server, String> {
    Server::start(&binary(), dbpath, &["--storage-engine", engine])
}

fn run(connection: &mut Connection, database: &str, command: &str) {
    let command = shell::parse_document(command).expect("shell syntax");
    let reply = connection.run_command(database, command.as_ref());
    reply.unwrap_or_else(|error| panic!("{command:?}: {error}"));
}

/// One collection in each engine, whichever engine is the server's own.
fn collections() -> Vec<String> {
    durable_engines().into_iter().map(|engine| format!("in_{engine}")).collect()
}

fn document(collection: &str, id: i32) -> DocumentBuf {
    let text = format!("document {id} of {collection}; ").repeat(20 + id as usize % 50);
    DocumentBuf::new().with("_id", id).with("mark", &*format!("mark {id}")).with("text", &*text)
}

fn insert(connection: &mut Connection, collection: &str, documents: &[DocumentBuf]) {
    let documents: ArrayBuf = documents.iter().collect();
    let command = DocumentBuf::new().with("insert", collection).with("documents", &documents);
    let reply = connection.run_command(DATABASE, command.as_ref()).expect("inserted");
    check_reply(reply.as_ref()).expect("inserted");
}

/// Makes a data directory with files of every kind, and stops the server in order.
fn fill(engine: &str, dbpath: &Path) {
    let mut server = start(engine, dbpath).expect("the server starts");
    let mut connection = connect(server.address());
    for (collection, engine) in collections().iter().zip(durable_engines()) {
        run(&mut connection, DATABASE, &format!("{{create: '{collection}', storageEngine: {{{engine}: {{}}}}}}"));
        let key = format!("{{createIndexes: '{collection}', indexes: [{{key: {{mark: 1}}, name: 'mark_1'}}]}}");
        run(&mut connection, DATABASE, &key);
        let documents: Vec<_> = (0..DOCUMENTS - LATE_DOCUMENTS).map(|id| document(collection, id)).collect();
        insert(&mut connection, collection, &documents);
    }
    // Fills the segment that contains the documents, so that they are moved out of it.
    let megabyte = "x".repeat(1 << 20);
    for id in 0..70 {
        insert(&mut connection, "filler", &[DocumentBuf::new().with("_id", id).with("pad", &*megabyte)]);
    }
    run(&mut connection, DATABASE, "{drop: 'filler'}");
    run(&mut connection, DATABASE, &format!("{{compact: '{}'}}", collections()[0]));
    for collection in collections() {
        let documents: Vec<_> = (DOCUMENTS - LATE_DOCUMENTS..DOCUMENTS).map(|id| document(&collection, id)).collect();
        insert(&mut connection, &collection, &documents);
    }
    server.stop();
}

/// Reads all documents in every way.
/// # Panics
/// If anything is returned that differs from what was written.
fn read(connection: &mut Connection) -> Result<(), ClientError> {
    for collection in collections() {
        let expected: Vec<_> = (0..DOCUMENTS).map(|id| document(&collection, id)).collect();
        for hint in ["{$natural: 1}", "{$natural: -1}", "{_id: 1}", "{mark: 1}"] {
            let hint = shell::parse_document(hint).expect("shell syntax");
            let find = DocumentBuf::new().with("find", &*collection).with("batchSize", 1000).with("hint", &hint);
            let mut found = connection.find_all(DATABASE, find.as_ref())?.collect::<Result<Vec<_>, _>>()?;
            found.sort_by_key(|document| match document.as_ref().get("_id") {
                Some(ValueRef::Int32(id)) => id,
                _ => -1,
            });
            assert!(found == expected, "{collection}: other documents by {hint:?}");
        }
        for id in (0..DOCUMENTS).step_by(7) {
            let filter = DocumentBuf::new().with("_id", id);
            let find = DocumentBuf::new().with("find", &*collection).with("filter", &filter);
            let found = connection.find_all(DATABASE, find.as_ref())?.collect::<Result<Vec<_>, _>>()?;
            assert!(found[..] == expected[id as usize..=id as usize], "{collection}: another document with _id {id}");
        }
        let validate = DocumentBuf::new().with("validate", &*collection).with("full", true);
        let reply = connection.run_command(DATABASE, validate.as_ref())?;
        assert!(matches!(reply.as_ref().get("valid"), Some(ValueRef::Boolean(true))), "{collection}: {reply:?}");
    }
    Ok(())
}

/// Kinds of files in which every byte is needed, and kinds in which only some are: tables contain keys that are not
/// looked up, and the data file has free pages.
const NEEDED: [&str; 5] = ["extents/.extent", "log/.segment", "manifest.bson", "trees/current", "trees/v"];
const NEEDED_IN_PART: [&str; 2] = ["mmap/data.mdb", "trees/tables/"];

/// How a flipped byte was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The server did not start.
    Refused,
    /// The server started, a command failed, and the server went on.
    Reported,
    /// The byte is not needed: everything was returned as it was written.
    Unneeded,
}

/// Starts the server and reads everything.
/// # Errors
/// A sentence about what the server did wrong.
fn outcome(engine: &str, dbpath: &Path, damaged: &Path) -> Result<Outcome, String> {
    let is_named = |message: &str| message.contains(&*damaged.to_string_lossy());
    let mut server = match start(engine, dbpath) {
        Ok(server) => server,
        Err(output) => {
            let last = output.lines().last().unwrap_or_default();
            let is_refusal = output.contains("exited (exit status: 1)") && last.starts_with("bunko: ");
            return if is_refusal && is_named(last) { Ok(Outcome::Refused) } else { Err(output) };
        }
    };
    let mut connection = connect(server.address());
    let outcome = match read(&mut connection) {
        Ok(()) => Ok(Outcome::Unneeded),
        Err(ClientError::Command(error)) if error.code != 0 && is_named(&error.message) => {
            run(&mut connection, "admin", "{ping: 1}");
            Ok(Outcome::Reported)
        }
        Err(other) => Err(format!("{other}\n{}", server.output_tail())),
    };
    server.kill();
    outcome
}

/// All files with content below the directory.
fn files(dbpath: &Path) -> BTreeSet<PathBuf> {
    let files = files_below(dbpath).into_iter().filter(|path| !LOCKS.iter().any(|lock| path.ends_with(lock)));
    files.map(|path| path.strip_prefix(dbpath).expect("below it").to_owned()).collect()
}

/// The kind of a file: its path without digits.
fn kind(file: &Path) -> String {
    let name = file.to_string_lossy();
    name.chars().filter(|character| !character.is_ascii_digit()).collect()
}

/// Offsets of bytes to flip, from the first to the last used byte. Zero bytes are left out, because preallocated space
/// is zero.
fn places(file: &Path) -> Vec<u64> {
    let bytes = fs::read(file).expect("readable");
    // A debug build takes seconds to look at each byte of a segment. It compares whole blocks, and bytes of short
    // files.
    let zeros = vec![0; (bytes.len() / BLOCKS_MAX).max(1)];
    let blocks = bytes.chunks(zeros.len()).enumerate();
    let used: Vec<_> = blocks.filter(|(_, block)| **block != zeros[..block.len()]).collect();
    let Some(last) = used.len().checked_sub(1) else { return Vec::new() };
    let place = |flip: usize| {
        let (number, block) = used[last * flip / (FLIPS - 1)];
        let is_used = |byte: &u8| *byte != 0;
        let used = if flip == FLIPS - 1 { block.iter().rposition(is_used) } else { block.iter().position(is_used) };
        (number * zeros.len() + used.expect("no block of zeros")) as u64
    };
    (0..FLIPS).map(place).collect()
}

fn flip(file: &Path, offset: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(file).expect("writable");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("readable");
    file.write_all_at(&[byte[0] ^ 0x10], offset).expect("writable");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-r", "--sparse=always"]).arg(from).arg(to).status();
    assert!(copied.expect("cp").success());
}

#[test]
fn a_flipped_byte_in_any_file_is_never_served() {
    // Each engine's server mostly waits for its files; in parallel they take half the time.
    std::thread::scope(|scope| {
        for engine in durable_engines() {
            scope.spawn(move || no_flipped_byte_is_served(engine));
        }
    });
}

fn no_flipped_byte_is_served(engine: &str) {
    let work = temporary_dbpath();
    let whole = work.path().join("whole");
    fill(engine, &whole);
    let mut outcomes: BTreeMap<String, BTreeSet<Outcome>> = BTreeMap::new();
    for file in files(&whole) {
        for offset in places(&whole.join(&file)) {
            let dbpath = work.path().join("damaged");
            copy(&whole, &dbpath);
            let damaged = dbpath.join(&file);
            flip(&damaged, offset);
            let outcome = outcome(engine, &dbpath, &damaged)
                .unwrap_or_else(|error| panic!("{engine}: {} at {offset}: {error}", file.display()));
            outcomes.entry(kind(&file)).or_default().insert(outcome);
            fs::remove_dir_all(&dbpath).expect("removed");
        }
    }
    for kind in NEEDED {
        let outcomes = outcomes.get(kind).unwrap_or_else(|| panic!("{engine}: no {kind}: {outcomes:?}"));
        assert!(!outcomes.contains(&Outcome::Unneeded), "{engine}: a byte of {kind} is not checked");
    }
    for kind in NEEDED_IN_PART {
        let outcomes = outcomes.get(kind).unwrap_or_else(|| panic!("{engine}: no {kind}: {outcomes:?}"));
        assert!(outcomes.iter().any(|outcome| *outcome != Outcome::Unneeded), "{engine}: {kind} is not checked");
    }
}
