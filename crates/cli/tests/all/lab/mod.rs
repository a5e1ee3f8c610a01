//! The lab as users run it: the binary, with scenario files and reports in a directory of the test's own.

pub mod proxy;

use crate::peer::binary;
use bunko_bench::DATABASE;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_client::{Connection, Uri};
use bunko_report::Report;
use bunko_report::result::{Measurement, Outcome};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const COLLECTION: &str = "documents";
/// Folder of the report of [`Lab::run`].
pub const REPORT: &str = "report";
const REPORT_FILES: [&str; 5] = ["report.json", "report.html", "runs.csv", "intervals.csv", "intervals.hlog"];

/// The head of a scenario file; phases follow.
pub const HEAD: &str = "\
name = 'mine'
about = 'a test'
prose = 'why'
repetitions = 1
[dataset]
shape = 'plain'
documents = 500
";

/// A server to be measured, on a directory of its own.
pub struct Measured {
    pub server: Server,
    _dbpath: tempfile::TempDir,
}

impl Measured {
    pub fn start() -> Self {
        let dbpath = temporary_dbpath();
        let server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
        Self { server, _dbpath: dbpath }
    }

    pub fn uri(&self) -> String {
        format!("mongodb://{}/", self.server.address())
    }

    pub fn connect(&self) -> Connection {
        Connection::connect(&self.uri().parse::<Uri>().expect("valid")).expect("the server accepts connections")
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.server.pid() as i32).expect("a process");
        kill_process(pid, signal).expect("a child may be signalled");
    }

    /// Inserts a document that the lab must not touch.
    pub fn insert_one(&self, database: &str) {
        let document = DocumentBuf::new().with("_id", "precious");
        let documents: ArrayBuf = [&document].into_iter().collect();
        let insert = DocumentBuf::new().with("insert", "kept").with("documents", &documents);
        self.connect().run_command(database, insert.as_ref()).expect("inserted");
    }

    /// Whether the document of [`Self::insert_one`] exists, and no other in its collection.
    pub fn has_one(&self, database: &str) -> bool {
        count(&mut self.connect(), database, "kept") == 1
    }

    /// Names of all databases except the server's own.
    pub fn databases(&self) -> Vec<String> {
        let reply = self.connect().run_command("admin", DocumentBuf::new().with("listDatabases", 1_i32).as_ref());
        let reply = reply.expect("listed");
        let listed = reply.as_ref().get("databases").and_then(ValueRef::as_array).expect("an array");
        let name = |value: ValueRef<'_>| value.as_document()?.get("name")?.as_str().map(str::to_owned);
        let names = listed.iter().map(|value| name(value).expect("a name"));
        names.filter(|name| !["admin", "config", "local"].contains(&name.as_str())).collect()
    }

    /// Waits until a run has inserted that many documents.
    pub fn wait_for_documents(&self, wanted: i64) {
        let mut connection = self.connect();
        wait_until("the run inserts", || count(&mut connection, DATABASE, COLLECTION) >= wanted);
    }

    /// All documents of a run as bytes, in the order of `_id`.
    pub fn read_documents(&self) -> Vec<Vec<u8>> {
        let mut connection = self.connect();
        let sort = DocumentBuf::new().with("_id", 1_i32);
        let find = DocumentBuf::new().with("find", COLLECTION).with("sort", &sort);
        let found = connection.find_all(DATABASE, find.as_ref()).expect("a cursor");
        found.map(|document| document.expect("a document").as_ref().as_bytes().to_vec()).collect()
    }
}

fn count(connection: &mut Connection, database: &str, collection: &str) -> i64 {
    let count = DocumentBuf::new().with("count", collection);
    let reply = connection.run_command(database, count.as_ref()).expect("counted");
    number(reply.as_ref(), "n").expect("a number")
}

fn number(document: DocumentRef<'_>, name: &str) -> Option<i64> {
    match document.get(name)? {
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number),
        _ => None,
    }
}

/// A directory with scenario files, in which the lab is run.
pub struct Lab(tempfile::TempDir);

/// Exit status and output of a run of the lab.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Lab {
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("bunko-lab-").tempdir().expect("a temporary directory"))
    }

    /// A lab whose `mine.toml` consists of [`HEAD`] and these phases.
    pub fn with_phases(phases: &str) -> Self {
        let lab = Self::new();
        lab.write("mine.toml", &format!("{HEAD}{phases}"));
        lab
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.arg("bench").args(arguments).current_dir(self.0.path()).env_remove("NO_COLOR");
        command
    }

    /// Runs `bunko bench ARGUMENTS`.
    pub fn bench(&self, arguments: &[&str]) -> Done {
        Done::of(start(self.command(arguments)))
    }

    /// Runs `mine.toml` against a server into [`REPORT`].
    pub fn run(&self, uri: &str, more: &[&str]) -> Done {
        self.bench(&Self::arguments(uri, more))
    }

    /// As [`Self::run`], without waiting for the end.
    pub fn start(&self, uri: &str, more: &[&str]) -> Child {
        start(self.command(&Self::arguments(uri, more)))
    }

    pub fn arguments<'a>(uri: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let arguments = ["run", "mine.toml", "--uri", uri, "--output", REPORT];
        arguments.iter().chain(more).copied().collect()
    }

    /// Reads a report from its folder, and checks that all its files exist.
    pub fn report(&self, folder: &str) -> Report {
        for name in REPORT_FILES {
            let length = std::fs::metadata(self.path(folder).join(name)).map(|file| file.len());
            assert!(length.as_ref().is_ok_and(|length| *length > 0), "{name}: {length:?}");
        }
        Report::read(&self.path(folder).join("report.json")).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Starts a command and captures its output.
pub fn start(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the lab starts")
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a child may be signalled");
}

impl Done {
    /// Waits for the end.
    pub fn of(child: Child) -> Self {
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The message of a refusal, which must be one line and the only output.
    pub fn refusal(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str(), self.stderr.lines().count()), (Some(1), "", 1), "{}", self.stderr);
        self.stderr.trim_end()
    }

    /// The run must have ended, whatever its verdict.
    pub fn assert_ended(&self) {
        assert!(matches!(self.code, Some(0 | 2)), "{:?}: {}{}", self.code, self.stderr, self.stdout);
    }
}

/// The only run of a phase.
pub fn only_run<'r>(report: &'r Report, phase: &str) -> &'r Outcome {
    let mut runs = report.steps.iter().filter(|step| step.phase == phase).flat_map(|step| &step.runs);
    let run = runs.next().unwrap_or_else(|| panic!("no run of {phase}"));
    assert!(runs.next().is_none(), "several runs of {phase}");
    &run.outcome
}

/// The figures of the only run of a phase.
pub fn only_measurement<'r>(report: &'r Report, phase: &str) -> &'r Measurement {
    match only_run(report, phase) {
        Outcome::Measured(measurement) => measurement,
        Outcome::Skipped { reason } => panic!("{phase} was skipped: {reason}"),
    }
}
