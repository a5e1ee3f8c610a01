//! The server under test, its collections, and the meaning of replies.

use crate::peer::binary;
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::{ClientError, CommandError, Connection, Uri, check_reply};
use bunko_testkit::process::Server;
use bunko_testkit::shell;
use std::net::SocketAddr;
use std::path::Path;

pub const DATABASE: &str = "brawl";
/// Collections whose documents have one writer each, with their engines; the first is in the server's own engine.
pub const COLLECTIONS: &[(&str, Option<&str>)] =
    &[("own", None), ("in_lsm", Some("lsm")), ("in_mmap", Some("mmap")), ("in_memory", Some("memory"))];
/// Collections with many duplicates that disappear while a unique index is built; each has one writer.
pub const CROWDS: &[(&str, Option<&str>)] =
    &[("crowd_lsm", Some("lsm")), ("crowd_mmap", Some("mmap")), ("crowd_memory", Some("memory"))];
/// Names of the collection that moves, by turns.
pub const MOVING: [&str; 2] = ["here", "there"];
/// Collections that are written to, renamed and dropped at once.
pub const DOOMED: [&str; 2] = ["doomed", "damned"];
/// Beginning of every failure's message.
pub const BROKEN: &str = "a promise is broken";

/// Error code of a duplicate key.
pub const DUPLICATE_KEY: i32 = 11000;
/// Refusals that are part of a brawl: namespaces and indexes come and go, builds meet duplicates and each other.
/// Source: `error_codes.yml` of MongoDB, by name: `BadValue` of a hint, `IndexOptionsConflict` and so on.
const EXPECTED: &[i32] = &[2, 26, 27, 48, 67, 82, 85, 86, 117, 175, 276, 11601, 12586, 12587, DUPLICATE_KEY];
/// Error codes of a server that is shutting down.
const STOPPING: [i32; 2] = [91, 11600];

/// Starts a server with the shortest checkpoint interval that it accepts.
pub fn start(engine: &str, dbpath: &Path) -> Result<Server, String> {
    let settings = ["--storage-engine", engine, "--sync-delay", "1", "--cache-size-gb", "0.25"];
    Server::start(&binary(), dbpath, &settings).map_err(|error| format!("{BROKEN}: {error}"))
}

pub fn connect(address: SocketAddr) -> Connection {
    let uri: Uri = format!("mongodb://{address}/?connectTimeoutMS=10000").parse().expect("a valid URI");
    Connection::connect(&uri).expect("the server accepts connections")
}

/// Outcome of a command.
pub enum Answer {
    Done,
    /// The command was refused, for a reason that is part of the brawl.
    Refused(CommandError),
    /// The server is gone, and the command may have been executed or not.
    Gone,
}

/// Runs a command.
///
/// # Panics
/// If it is refused for a reason that is not part of the brawl.
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

/// Creates the collections and fills them.
pub fn prepare(address: SocketAddr) {
    let mut connection = connect(address);
    for (name, engine) in COLLECTIONS.iter().chain(CROWDS) {
        let engine = engine.map_or_else(String::new, |engine| format!(", storageEngine: {{{engine}: {{}}}}"));
        let created = run(&mut connection, &command(&format!("{{create: '{name}'{engine}}}")));
        assert!(matches!(created, Answer::Done), "{name} cannot be created");
    }
}
