//! Runs the scripts in `tests/scripts` on every engine, those in `tests/engines/<engine>` on that engine, those in
//! `tests/oplog` on a server with an oplog, those in `tests/replica_set` on a member of a set, and those in
//! `tests/test_commands` on a member with test commands enabled. Commands run against a real store, with a fresh server
//! for each file.
//!
//! ```text
//! run admin
//! {ping: 1}
//! ----
//! {ok: 1.0}
//! ```
//! `run` takes a database (default `test`), `connection=2` for a second client, and `only=(n,ok)` to show only those
//! fields of replies. The input is any number of commands; a line that begins with a blank continues the command above
//! it. `expire` runs one pass of the thread that deletes expired documents. `REWRITE=1 cargo test` writes the replies
//! into the files; read them.

use crate::server::Server;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_store::LogOptions;
use bunko_testkit::shell;
use datadriven::TestCase;
use std::fmt::Write as _;

/// Replies of up to this many characters are printed on one line.
const LINE_CHARACTERS_MAX: usize = 120;
/// Fields whose values differ between runs or machines.
const VOLATILE: &[&str] = &[
    "clusterParameterTime",
    "cpuArch",
    "cpuFeatures",
    "cpuFrequencyMHz",
    "cpuNanos",
    "cpuString",
    "debug",
    "distarch",
    "disk",
    "engineBytes",
    "executionTimeMillis",
    "executionTimeMillisEstimate",
    "fsTotalSize",
    "fsUsedSize",
    "kernelVersion",
    "lastAccessDate",
    "lastCheckpointMicros",
    "lastGrowthMicros",
    "lastMillis",
    "latency",
    "libcVersion",
    "longestCheckpointMicros",
    "longestGrowthMicros",
    "longestMillis",
    "maxOpenFiles",
    "memLimitMB",
    "memSizeMB",
    "microsecs_running",
    "millis",
    "numCores",
    "numCoresAvailableToProcess",
    "numCpuSockets",
    "numNumaNodes",
    "numPages",
    "numPhysicalCores",
    "pageSize",
    "page_faults",
    "pid",
    "resident",
    "syncLatencies",
    "syncedGroups",
    "syncedLsn",
    "system_time_us",
    "target_arch",
    "target_os",
    "time",
    "timeMillis",
    "totalTime",
    "unflushedBytes",
    "uptime",
    "uptimeEstimate",
    "uptimeMillis",
    "user_time_us",
    "versionString",
    "virtual",
    "writtenGroups",
];

/// Fields whose values differ between engines. Scripts for one engine show them.
const BY_ENGINE: &[&str] = &[
    "freeStorageSize",
    "indexFreeStorageSize",
    "indexSize",
    "indexSizes",
    "sizeOnDisk",
    "storageEngines",
    "storageSize",
    "totalFreeStorageSize",
    "totalIndexSize",
    "totalSize",
    "totalSizeMb",
];

/// A server that scripts run on.
struct Runner {
    server: Server,
    /// The engine's name to hide, in scripts that run on all engines.
    hidden: Option<&'static str>,
}

impl Runner {
    /// Runs one pass, and lists the indexes that could not delete.
    fn expire(&self) -> String {
        let service = &self.server.service;
        let output = std::cell::RefCell::new(String::new());
        bunko_command::delete_expired(service, &service.own_operation(), &|namespace, index, failure| {
            let _ = writeln!(output.borrow_mut(), "{namespace} {index}: {failure}");
        });
        output.into_inner() + "done\n"
    }

    fn run(&mut self, case: &TestCase) -> String {
        if case.directive == "expire" {
            return self.expire();
        }
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
            let reply = self.server.run(connection, database, command.as_ref());
            self.print(&mut output, reply.as_ref(), only);
            if self.server.was_shut_down() {
                output.push_str("(shut down)\n");
            }
        }
        output
    }

    fn print(&self, output: &mut String, reply: DocumentRef<'_>, only: &[String]) {
        let mut shown = DocumentBuf::new();
        for element in reply.iter().filter(|element| only.is_empty() || only.iter().any(|name| name == element.name)) {
            shown.append(self.name(element.name), &self.without_volatile(element.name, element.value));
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

    fn name<'n>(&self, name: &'n str) -> &'n str {
        if self.hidden == Some(name) { "<engine>" } else { name }
    }

    fn without_volatile(&self, name: &str, value: ValueRef<'_>) -> Value {
        if VOLATILE.contains(&name) || self.hidden.is_some() && BY_ENGINE.contains(&name) {
            return Value::from(ValueRef::String("<...>"));
        }
        match value {
            ValueRef::Document(document) => {
                let mut copy = DocumentBuf::new();
                for element in document {
                    copy.append(self.name(element.name), &self.without_volatile(element.name, element.value));
                }
                Value::Document(copy)
            }
            ValueRef::Array(array) => {
                let mut copy = ArrayBuf::new();
                for element in array.iter() {
                    copy.push(&self.without_volatile("", element));
                }
                Value::Array(copy)
            }
            ValueRef::String(name) if self.hidden == Some(name) => Value::from(ValueRef::String("<engine>")),
            other => other.to_value(),
        }
    }
}

/// Splits the input before each line that does not begin with a blank.
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

#[test]
fn scripts_of_all_engines() {
    for engine in ENGINES {
        eprintln!("engine {}", engine.name);
        datadriven::walk("tests/scripts", |file| {
            let server = Server::start(engine, &EngineOptions::default());
            let mut runner = Runner { server, hidden: Some(engine.name) };
            file.run(|case| runner.run(case));
        });
        if std::env::var_os("REWRITE").is_some() {
            // The other engines must give these replies, not write their own.
            break;
        }
    }
}

#[test]
fn scripts_of_one_engine() {
    for engine in ENGINES {
        datadriven::walk(&format!("tests/engines/{}", engine.name), |file| {
            let server = Server::start(engine, &EngineOptions::default());
            let mut runner = Runner { server, hidden: None };
            file.run(|case| runner.run(case));
        });
    }
}

#[test]
fn scripts_of_a_server_with_an_oplog() {
    // Log positions, and so the times of entries, differ slightly on another engine, because the log contains its name.
    let lsm = &ENGINES[0];
    datadriven::walk("tests/oplog", |file| {
        let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
        let mut runner = Runner { server: Server::start_with_log(lsm, &EngineOptions::default(), log), hidden: None };
        file.run(|case| runner.run(case));
    });
}

#[test]
fn scripts_of_a_member_of_a_set() {
    let lsm = &ENGINES[0];
    datadriven::walk("tests/replica_set", |file| {
        let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
        let mut runner = Runner { server: Server::start_as_member(lsm, &EngineOptions::default(), log), hidden: None };
        file.run(|case| runner.run(case));
    });
}

#[test]
fn scripts_of_a_server_that_takes_test_commands() {
    let lsm = &ENGINES[0];
    datadriven::walk("tests/test_commands", |file| {
        let log = LogOptions { history_bytes_max: Some(128 << 20), ..LogOptions::default() };
        let mut runner = Runner { server: Server::start_for_tests(lsm, &EngineOptions::default(), log), hidden: None };
        file.run(|case| runner.run(case));
    });
}
