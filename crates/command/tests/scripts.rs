//! Runs the scripts in `tests/scripts`: commands against a real store, one fresh server for each file.
//!
//! ```text
//! run admin
//! {ping: 1}
//! ----
//! {ok: 1.0}
//! ```
//! `run` takes a database (`test` where none is named), `connection=2` for another client than the first, and
//! `only=(n,ok)` to show those fields of replies alone. The input is any number of commands; a line that begins with
//! a blank goes on with the command above it. `REWRITE=1 cargo test` writes the answers into the files; read them.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_catalog::Catalog;
use bunko_command::{Acknowledgement, ClientConnection, Facts, Halt, LogLines, Pace, Peer, Request, Service, World};
use bunko_lsm::{LsmEngine, LsmOptions};
use bunko_store::{LogOptions, Store, StoreOptions};
use bunko_testkit::shell;
use datadriven::TestCase;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// 2026-01-01T00:00:00Z, which is what every script's clock says.
const NOW_MS: u64 = 1_767_225_600_000;
/// Replies up to that many characters are one line.
const LINE_CHARACTERS_MAX: usize = 120;
/// Fields whose values differ from run to run or from machine to machine.
const VOLATILE: &[&str] = &[
    "cpuArch",
    "cpuFeatures",
    "cpuFrequencyMHz",
    "cpuString",
    "debug",
    "distarch",
    "engineDiskBytes",
    "executionTimeMillis",
    "kernelVersion",
    "lastCheckpointMillis",
    "latency",
    "libcVersion",
    "maxOpenFiles",
    "memLimitMB",
    "memSizeMB",
    "microsecs_running",
    "numCores",
    "numPages",
    "pageSize",
    "page_faults",
    "pid",
    "resident",
    "storageSize",
    "syncedGroups",
    "syncedLsn",
    "target_arch",
    "target_os",
    "time",
    "totalIndexSize",
    "totalSize",
    "totalTime",
    "unflushedBytes",
    "uptime",
    "uptimeEstimate",
    "uptimeMillis",
    "versionString",
    "virtual",
    "writtenGroups",
];

struct Server {
    service: Service,
    connections: BTreeMap<i32, ClientConnection>,
    was_shut_down: Arc<AtomicBool>,
    // Dropped last: the store writes into it to its end.
    _directory: tempfile::TempDir,
}

fn open_store(directory: &tempfile::TempDir) -> Arc<Store> {
    let options = StoreOptions {
        log: LogOptions::default(),
        checkpoint_interval: Duration::from_hours(1),
        unflushed_bytes_max: 64 << 20,
        clock: Arc::new(|| NOW_MS),
        on_background_error: Arc::new(|what, error| panic!("{what}: {error}")),
    };
    let engine = LsmOptions { cache_bytes: 1 << 20 };
    Store::open(directory.path(), options, Box::new(move |path, log| Ok(LsmEngine::open(path, log, engine)?)))
        .expect("a new store opens")
}

/// Numbers that look like chance and are the same in every run.
fn repeatable_random(seed: u64) -> impl Fn() -> u64 + Send + Sync {
    let calls = AtomicU64::new(seed);
    move || {
        let mut mixed = calls.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Server {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("temporary directory");
        let uuids = repeatable_random(1000);
        let new_uuid = Box::new(move || {
            let mut uuid = [0; 16];
            uuid[..8].copy_from_slice(&uuids().to_le_bytes());
            uuid[8..].copy_from_slice(&uuids().to_le_bytes());
            uuid
        });
        let catalog = Catalog::open(open_store(&directory), new_uuid).expect("an empty catalog opens");
        let facts = Facts {
            host: "localhost:27017".to_owned(),
            arguments: vec!["bunko".to_owned(), "serve".to_owned()],
            parsed_options: DocumentBuf::new().with("net", &DocumentBuf::new().with("port", 27017)),
            connections_max: 1000,
            journal_commit_interval: Duration::from_millis(100),
        };
        let was_shut_down = Arc::new(AtomicBool::new(false));
        let shut_down = Arc::clone(&was_shut_down);
        let service = Service::new(
            catalog,
            World::new(Arc::new(|| NOW_MS), Arc::new(repeatable_random(1))),
            facts,
            Arc::new(LogLines::default()),
            Box::new(move || shut_down.store(true, Ordering::Relaxed)),
        );
        Self { service, connections: BTreeMap::new(), was_shut_down, _directory: directory }
    }

    fn run_case(&mut self, case: &TestCase) -> String {
        assert_eq!(case.directive, "run", "unknown directive");
        let mut database = "test";
        let mut connection = 1;
        let mut only: &[String] = &[];
        for (argument, values) in &case.args {
            match argument.as_str() {
                "connection" => connection = values[0].parse().expect("connection=number"),
                "only" => only = values,
                name => {
                    assert!(values.is_empty(), "{name}: no such argument");
                    database = name;
                }
            }
        }
        let mut output = String::new();
        for command in commands(&case.input) {
            let command = shell::parse_document(&command).unwrap_or_else(|error| panic!("{command}: {error}"));
            let reply = self.run_command(connection, database, command.as_ref());
            print_reply(&mut output, reply.as_ref(), only);
            if self.was_shut_down.swap(false, Ordering::Relaxed) {
                output.push_str("(shut down)\n");
            }
        }
        output
    }

    fn run_command(&mut self, connection: i32, database: &str, body: DocumentRef<'_>) -> DocumentBuf {
        let connection = self.connections.entry(connection).or_insert_with(|| {
            let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            ClientConnection::new(
                connection,
                Peer { address: address(50_000 + connection as u16), local: address(27017) },
            )
        });
        let request = Request { database, body, message: None };
        let mut reply = Vec::new();
        // As the server has it: what refuses to be short runs again where it may be long.
        let answer = match self.service.run(connection, request, Pace::Short, &mut reply) {
            Err(Halt::TooLong) => self.service.run(connection, request, Pace::Long, &mut reply),
            answer => answer,
        }
        .expect("a command may be long");
        if let Acknowledgement::Written(lsn) | Acknowledgement::Durable(lsn) = answer.acknowledgement {
            self.service.catalog.store().log().write(lsn).expect("the log takes it");
        }
        DocumentBuf::parse(reply).expect("the reply is well formed")
    }
}

/// Splits the input where a line begins without a blank.
fn commands(input: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in input.lines() {
        match commands.last_mut() {
            Some(command) if line.starts_with([' ', ']', '}']) => {
                command.push('\n');
                command.push_str(line);
            }
            _ => commands.push(line.to_owned()),
        }
    }
    commands
}

fn print_reply(output: &mut String, reply: DocumentRef<'_>, only: &[String]) {
    let mut shown = DocumentBuf::new();
    for element in reply {
        if only.is_empty() || only.iter().any(|name| name == element.name) {
            shown.append(element.name, &without_volatile(element.name, element.value));
        }
    }
    let line = shell::print(ValueRef::Document(shown.as_ref()));
    if line.chars().count() <= LINE_CHARACTERS_MAX {
        let _ = writeln!(output, "{line}");
        return;
    }
    output.push_str("{\n");
    for element in shown.as_ref() {
        let field = shell::print(ValueRef::Document(DocumentBuf::new().with(element.name, element.value).as_ref()));
        let _ = writeln!(output, "  {},", field[1..field.len() - 1].trim());
    }
    output.push_str("}\n");
}

fn without_volatile(name: &str, value: ValueRef<'_>) -> Value {
    if VOLATILE.contains(&name) && value.as_document().is_none() {
        return Value::from(ValueRef::String("<...>"));
    }
    match value {
        ValueRef::Document(document) => {
            let mut copy = DocumentBuf::new();
            for element in document {
                copy.append(element.name, &without_volatile(element.name, element.value));
            }
            Value::Document(copy)
        }
        ValueRef::Array(array) => {
            let mut copy = ArrayBuf::new();
            for element in array.iter() {
                copy.push(&without_volatile("", element));
            }
            Value::Array(copy)
        }
        other => other.to_value(),
    }
}

#[test]
fn scripts() {
    datadriven::walk("tests/scripts", |file| {
        let mut server = Server::start();
        file.run(|case| server.run_case(case));
    });
}
