//! The server that is fought in, its collections, and what a reply means.

use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::{ClientError, CommandError, Connection, Uri, check_reply};
use bunko_testkit::process::Server;
use bunko_testkit::shell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub const DATABASE: &str = "brawl";
/// Collections whose documents have one writer each, with the engine that keeps them; the first is in the server's own.
pub const COLLECTIONS: &[(&str, Option<&str>)] =
    &[("own", None), ("in_lsm", Some("lsm")), ("in_mmap", Some("mmap")), ("in_memory", Some("memory"))];
/// Collections that many duplicates leave while a unique index is built, each with one writer.
pub const CROWDS: &[(&str, Option<&str>)] =
    &[("crowd_lsm", Some("lsm")), ("crowd_mmap", Some("mmap")), ("crowd_memory", Some("memory"))];
/// What the collection that moves is called, in turns.
pub const MOVING: [&str; 2] = ["here", "there"];
/// Collections that are written to, renamed and dropped at once.
pub const DOOMED: [&str; 2] = ["doomed", "damned"];
/// How every complaint begins.
pub const BROKEN: &str = "a promise is broken";

/// Keys of documents that must not occur twice.
pub const DUPLICATE_KEY: i32 = 11000;
/// Refusals that a brawl makes: namespaces and indexes come and go, builds meet duplicates and each other.
/// Source: `error_codes.yml` of MongoDB, by name: `BadValue` of a hint, `IndexOptionsConflict` and so on.
const EXPECTED: &[i32] = &[2, 26, 27, 48, 67, 82, 85, 86, 117, 175, 276, 11601, 12586, 12587, DUPLICATE_KEY];
/// Codes by which a server that is being stopped says so.
const STOPPING: [i32; 2] = [91, 11600];

/// The server under test: the one that cargo built, or the one that a suite names.
fn binary() -> PathBuf {
    std::env::var_os("BUNKO_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_bunko").into(), PathBuf::from)
}

/// Starts a server that checkpoints as often as it may be told to.
pub fn start(engine: &str, dbpath: &Path) -> Result<Server, String> {
    let settings = ["--storage-engine", engine, "--sync-delay", "1", "--cache-size-gb", "0.25"];
    Server::start(&binary(), dbpath, &settings).map_err(|error| format!("{BROKEN}: {error}"))
}

pub fn connect(address: SocketAddr) -> Connection {
    let uri: Uri = format!("mongodb://{address}/?connectTimeoutMS=10000").parse().expect("a valid URI");
    Connection::connect(&uri).expect("the server accepts connections")
}

/// What became of a command.
pub enum Answer {
    Done,
    /// It was refused, for a reason that a brawl makes.
    Refused(CommandError),
    /// The server is gone, and nobody knows whether it was done.
    Gone,
}

/// Runs a command.
///
/// # Panics
/// Where it is refused for a reason that nobody here has made.
pub fn run(connection: &mut Connection, command: &DocumentBuf) -> Answer {
    let failure = match connection.run_command(DATABASE, command.as_ref()) {
        Ok(reply) => match check_reply(reply.as_ref()) {
            Ok(_) => return Answer::Done,
            Err(failure) => failure,
        },
        Err(ClientError::Command(failure)) => failure,
        Err(_) => return Answer::Gone,
    };
    if STOPPING.contains(&failure.code) {
        return Answer::Gone;
    }
    assert!(EXPECTED.contains(&failure.code), "{BROKEN}: {failure:?} to {command:?}");
    Answer::Refused(failure)
}

/// A command in shell syntax.
pub fn command(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// An insert of these documents.
pub fn insert(collection: &str, documents: &[DocumentBuf]) -> DocumentBuf {
    let documents: ArrayBuf = documents.iter().collect();
    DocumentBuf::new().with("insert", collection).with("documents", &documents)
}

/// Creates what is fought over, and fills it.
pub fn prepare(address: SocketAddr) {
    let mut connection = connect(address);
    for (name, engine) in COLLECTIONS.iter().chain(CROWDS) {
        let engine = engine.map_or_else(String::new, |engine| format!(", storageEngine: {{{engine}: {{}}}}"));
        let created = run(&mut connection, &command(&format!("{{create: '{name}'{engine}}}")));
        assert!(matches!(created, Answer::Done), "{name} cannot be created");
    }
}
