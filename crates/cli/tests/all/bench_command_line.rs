//! The lab's command line: refusals of one line, databases that may be dropped, output streams, and secrets.

use crate::lab::{Done, HEAD, Lab, Measured, REPORT, proxy};
use crate::peer::binary;
use bunko_bench::{DATABASE, Report};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_report::result::Transport;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

const LOAD: &str = "[[phase]]\nname = 'load'\noperation.load = {}\n";
const NOBODY: &str = "mongodb://127.0.0.1:1/?connectTimeoutMS=300";

#[test]
fn a_mistake_in_a_file_is_one_line_with_file_line_and_key() {
    let lab = Lab::with_phases(LOAD);
    lab.write("mine.toml", &format!("{HEAD}{LOAD}[load]\nconections = 3\n"));
    let expected = "bunko: mine.toml, line 12: load: unknown field `conections`, expected one of `connections`, ";
    let refusal = lab.run(NOBODY, &[]);
    assert!(refusal.refusal().starts_with(expected), "{}", refusal.stderr);
    assert!(!lab.path(REPORT).exists(), "a refused run writes nothing");
    let found = lab.bench(&["find-max", "mine.toml", "--p99", "1s"]);
    assert!(found.refusal().starts_with(expected), "{}", found.stderr);
    let short = lab.bench(&["mine.toml"]);
    assert!(short.refusal().starts_with(expected), "{}", short.stderr);
    let missing = lab.bench(&["run", "other.toml"]);
    assert!(missing.refusal().starts_with("bunko: other.toml: cannot be read: "), "{}", missing.stderr);
}

#[test]
fn a_mistake_on_the_command_line_is_named() {
    let lab = Lab::with_phases(LOAD);
    let set = lab.run(NOBODY, &["--set", "load.connections=0"]);
    assert_eq!(set.refusal(), "bunko: mine.toml: phase 'load': connections: 0 is not in 1..60000");
    let scale = lab.run(NOBODY, &["--scale", "large"]);
    let expected = "bunko: mine.toml: --set dataset.total-bytes=large: 'large' is not a size in bytes such as ";
    assert!(scale.refusal().starts_with(expected), "{}", scale.stderr);
    assert_eq!(
        lab.run(NOBODY, &["--repetitions", "0"]).refusal(),
        "bunko: mine.toml: repetitions: at least 1 is needed"
    );
    let drop = lab.run(NOBODY, &["--drop", "other"]);
    assert_eq!(drop.refusal(), "bunko: --drop other: the lab works in 'bunko_bench' and drops nothing else");
    let objective = lab.bench(&["find-max", "mine.toml"]);
    assert_eq!(objective.refusal(), "bunko: find-max needs an objective: --p99 TIME or --p999 TIME");
    let uri = lab.run("mongo://127.0.0.1", &[]);
    assert!(uri.refusal().contains("mongodb://"), "{}", uri.stderr);
    // Errors that clap finds have exit status 2.
    for (wrong, words) in [
        (&["run", "mine.toml", "--uri", NOBODY, "--worker", "2/2"][..], "'2/2' is not INDEX/COUNT"),
        (&["run", "mine.toml", "--worker", "0/2"], "--uri <URI>"),
        (&["run", "mine.toml", "--set", "load.connections"], "'load.connections' is not KEY=VALUE"),
        (&["run"], "<FILE>"),
        (&["insert"], "unrecognized subcommand 'insert'"),
        (&[], "insert-matrix"),
    ] {
        let done = lab.bench(wrong);
        assert!(done.code == Some(2) && done.stderr.contains(words), "{wrong:?}: {}", done.stderr);
    }
}

#[test]
fn an_unreachable_server_is_one_line() {
    let lab = Lab::with_phases(LOAD);
    let done = lab.run(NOBODY, &[]);
    let expected = "bunko: no MongoDB server reached at 127.0.0.1:1 within 0.3 s: ";
    assert!(done.refusal().starts_with(expected), "{}", done.stderr);
    assert!(!lab.path(REPORT).exists(), "nothing was measured");
}

#[test]
fn a_database_with_the_labs_name_is_not_touched() {
    let server = Measured::start();
    server.insert_one(DATABASE);
    let lab = Lab::with_phases(LOAD);
    let address = server.server.address();
    let refusal =
        format!("bunko: database 'bunko_bench' exists on {address}; '--drop bunko_bench' allows the lab to drop it");
    assert_eq!(lab.run(&server.uri(), &[]).refusal(), refusal);
    assert!(lab.run(&server.uri(), &["--drop", "kept"]).refusal().contains("drops nothing else"));
    assert!(server.has_one(DATABASE), "untouched");
    lab.run(&server.uri(), &["--drop", DATABASE]).assert_ended();
    assert_eq!(server.databases(), [""; 0], "it is the lab's own now, and gone");
}

#[test]
fn json_is_all_that_goes_to_stdout() {
    let server = Measured::start();
    let lab = Lab::with_phases(LOAD);
    let done = lab.run(&server.uri(), &["--json"]);
    let printed: Report = serde_json::from_str(&done.stdout).expect("one JSON document");
    assert!(printed == lab.report(REPORT), "the same report as in the file");
    assert!(done.stderr.contains("report: report/report.html"), "{}", done.stderr);
    assert_eq!(lab.run(&server.uri(), &["--quiet"]).stderr, "report: report/report.html\n");
}

#[test]
fn lines_to_a_pipe_have_no_escape_codes() {
    let server = Measured::start();
    let done = Lab::with_phases(LOAD).run(&server.uri(), &[]);
    assert!(done.stderr.starts_with("[1/1] load x 1 (repetition 1) "), "{}", done.stderr);
    assert!(!done.stderr.contains(['\x1b', '\r']) && !done.stdout.contains(['\x1b', '\r']), "{}", done.stderr);
}

/// Runs a command with a terminal as its stderr; returns what it writes there.
fn on_a_terminal(mut command: Command) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&terminal).expect("granted");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("its name");
    let stderr = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
    let mut run =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::from(stderr)).spawn().expect("started");
    // The command holds the other end of the terminal, too.
    drop(command);
    let (mut written, mut buffer, mut terminal) = (Vec::new(), [0; 4096], File::from(terminal));
    // A read fails once no process has the other end open.
    while let Ok(length @ 1..) = terminal.read(&mut buffer) {
        written.extend_from_slice(&buffer[..length]);
    }
    // The verdict on short runs varies.
    assert!(matches!(run.wait().expect("it ends").code(), Some(0 | 2)));
    String::from_utf8(written).expect("UTF-8")
}

#[test]
fn a_terminal_gets_a_live_line_and_colour_unless_unwanted() {
    let server = Measured::start();
    let (bold, uri) = ("\x1b[1m", server.uri());
    let run = |no_color: Option<&str>| {
        let lab = Lab::with_phases(LOAD);
        let mut command = lab.command(&Lab::arguments(&uri, &[]));
        command.envs(no_color.map(|value| ("NO_COLOR", value)));
        on_a_terminal(command)
    };
    let colour = run(None);
    assert!(colour.contains(bold) && colour.contains('\r'), "{colour:?}");
    assert!(run(Some("")).contains(bold), "an empty NO_COLOR says nothing");
    let plain = run(Some("1"));
    // The sequence that erases the rest of a line is not a colour.
    assert!(plain.contains("\r\x1b[K") && !plain.replace("\x1b[K", "").contains('\x1b'), "{plain:?}");
}

const PASSWORD: &str = "swordfish/42";
const ENCODED_PASSWORD: &str = "swordfish%2F42";

/// The whole conversation of PLAIN, with a server that accepts every client.
fn believes_everybody(command: DocumentRef<'_>) -> Option<DocumentBuf> {
    (command.first()?.name == "saslStart").then(|| {
        let reply = DocumentBuf::new().with("conversationId", 1_i32).with("done", true);
        reply.with("payload", ValueRef::Binary { subtype: 0, bytes: b"" }).with("ok", 1.0)
    })
}

fn assert_no_password(what: &str, text: &str) {
    assert!(!text.contains(PASSWORD) && !text.contains(ENCODED_PASSWORD), "{what} tells the password: {text}");
}

#[test]
fn passwords_appear_nowhere() {
    let server = Measured::start();
    let lab = Lab::with_phases(LOAD);
    let ca_file = lab.path("ca.pem");
    let port = proxy::start_tls(server.server.address(), &ca_file, believes_everybody);
    let ca_file = ca_file.to_str().expect("UTF-8");
    let options = format!("tls=true&tlsCAFile={ca_file}&authMechanism=PLAIN&authSource=$external");
    let uri = format!("mongodb://somebody:{ENCODED_PASSWORD}@localhost:{port}/?{options}");
    let done = lab.run(&uri, &[]);
    done.assert_ended();
    let report = lab.report(REPORT);
    assert_eq!(report.targets[0].transports, [Transport::Tls]);
    let command = report.command.join(" ");
    assert!(command.contains(&format!("localhost:{port}")), "the command repeats the run: {command}");
    for file in std::fs::read_dir(lab.path(REPORT)).expect("the report") {
        let path = file.expect("a file").path();
        assert_no_password(&path.display().to_string(), &std::fs::read_to_string(&path).expect("text"));
    }
    assert_no_password("output", &format!("{}{}", done.stdout, done.stderr));
    // Refusals quote their cause, which must not contain the whole connection string.
    let address = server.server.address();
    for uri in [
        format!("mongodb://somebody:{ENCODED_PASSWORD}@{address}/"),
        format!("mongodb://somebody:{ENCODED_PASSWORD}@127.0.0.1:1/?connectTimeoutMS=100"),
        format!("mongodb://somebody:{ENCODED_PASSWORD}@127.0.0.1:port/"),
        format!("mongodb://somebody:{PASSWORD}@{address}/"),
    ] {
        let Done { code, stdout, stderr } = lab.run(&uri, &[]);
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(1), "", 1), "{stderr}");
        assert_no_password(&uri, &stderr);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    for arguments in [&["bench", "list"][..], &["bench", "show", "ycsb-a"], &["serve", "--print-config"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(binary()).args(arguments).stdout(writer).output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}
