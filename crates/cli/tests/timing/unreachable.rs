//! Tools and the lab with a server that is gone, is stopped, or lacks what they ask for; and their end on request.

use crate::alone;
use crate::lab::{self, Done, Lab};
use crate::peer::{Running, binary};
use crate::tool::{self, fail, text};
use bunko_bench::DATABASE;
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{exit_of, fixed_port};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A timeout in seconds that no test waits for: a process that ends before it has not waited for its server.
const FOR_EVER_S: &str = "1000";

fn signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process as i32).expect("a process"), signal).expect("it may be signalled");
}

/// Waits for a process to end; returns its exit status and its standard error.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut stderr = child.stderr.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        said
    });
    let code = exit_of(&mut child).code();
    (code, reader.join().expect("read"))
}

fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the tool runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_dump_of_what_does_not_exist_fails() {
    let _alone = alone();
    let running = Running::start();
    let directory = tempfile::tempdir().expect("temporary directory");
    let out = directory.path().join("dump");
    let error = fail("dump", running.address(), &["-d", "nosuch", "-o", text(&out)]);
    assert!(error.contains("the database 'nosuch' does not exist"), "{error}");
    let error = fail("dump", running.address(), &["-d", "peer", "-c", "nosuch", "-o", text(&out)]);
    assert!(error.contains("peer.nosuch does not exist"), "{error}");
    assert!(!out.exists() || fs::read_dir(&out).expect("readable").next().is_none(), "something is left");
    // A collection that exists may be excluded.
    tool::succeed("dump", running.address(), &["-d", "peer", "--excludeCollection", "kept", "-o", text(&out)]);
}

#[test]
fn a_folder_that_is_no_dump_is_not_restored() {
    let _alone = alone();
    let running = Running::start();
    let directory = tempfile::tempdir().expect("temporary directory");
    fs::create_dir(directory.path().join("photos")).expect("a directory");
    fs::write(directory.path().join("photos/cat.jpg"), "cat").expect("written");
    fs::write(directory.path().join("notes.txt"), "notes").expect("written");
    let refused = |path: &Path, flags: &[&str]| fail("restore", running.address(), &[flags, &[text(path)]].concat());
    let error = refused(directory.path(), &[]);
    assert!(error.contains("is not a dump") && error.contains(text(directory.path())), "{error}");
    let error = refused(&directory.path().join("photos"), &["-d", "x"]);
    assert!(error.contains("is not a dump"), "{error}");
    let dump = directory.path().join("dump");
    tool::succeed("dump", running.address(), &["-d", "peer", "-o", text(&dump)]);
    let error = refused(&dump.join("peer"), &["--drop"]);
    assert!(error.contains("is not a dump") && error.contains("--db"), "{error}");
    tool::succeed("restore", running.address(), &["--drop", "-d", "peer", text(&dump.join("peer"))]);
}

#[test]
fn tools_give_up_on_a_server_that_stands_still() {
    let _alone = alone();
    let running = Running::start();
    let directory = tempfile::tempdir().expect("temporary directory");
    let out = directory.path().join("dump");
    // A stopped server never answers.
    signal(running.server.pid(), Signal::STOP);
    let command = tool::command("dump", running.address(), &["-o", text(&out), "--server-timeout", "1"]);
    let (code, said) = ended(spawn(command));
    assert_eq!(code, Some(1), "{said}");
    signal(running.server.pid(), Signal::CONT);
    running.assert_serves();
}

/// A dump that waits for a server in the middle of its work.
fn stalled_dump(running: &Running, out: &Path, seconds: &str) -> Child {
    let mut connection = tool::connect(running.address());
    let text_of = "x".repeat(100_000);
    let documents: Vec<_> =
        (0..600).map(|id| bunko_bson::DocumentBuf::new().with("_id", id).with("text", text_of.as_str())).collect();
    for documents in documents.chunks(100) {
        tool::insert(&mut connection, "big", "things", documents);
    }
    let mut command = tool::command("dump", running.address(), &["-o", text(out), "--server-timeout", seconds]);
    command.args(["--threads", "1", "--numParallelCollections", "1"]);
    let child = spawn(command);
    wait_until("it begins", || fs::read_dir(out.join("big")).is_ok_and(|mut entries| entries.next().is_some()));
    signal(running.server.pid(), Signal::STOP);
    child
}

#[test]
fn a_dump_gives_up_in_the_middle_and_can_be_resumed() {
    let _alone = alone();
    let running = Running::start();
    let directory = tempfile::tempdir().expect("temporary directory");
    let out = directory.path().join("dump");
    let child = stalled_dump(&running, &out, "2");
    let (code, said) = ended(child);
    signal(running.server.pid(), Signal::CONT);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no answer for 2 s") && said.contains("--resume"), "{said}");
    let flags = ["-o", text(&out), "--threads", "1", "--numParallelCollections", "1", "--resume"];
    tool::succeed("dump", running.address(), &flags);
    assert_eq!(fs::metadata(out.join("big/things.bson")).expect("written").len() / 100_000, 600);
}

#[test]
fn tools_end_at_once_when_asked() {
    let _alone = alone();
    for request in [Signal::INT, Signal::TERM] {
        let running = Running::start();
        let directory = tempfile::tempdir().expect("temporary directory");
        let out = directory.path().join("dump");
        let child = stalled_dump(&running, &out, FOR_EVER_S);
        signal(child.id(), request);
        let (code, said) = ended(child);
        signal(running.server.pid(), Signal::CONT);
        assert!(matches!(code, Some(1 | 130)), "{code:?}: {said}");
        tool::succeed(
            "dump",
            running.address(),
            &["-o", text(&out), "--threads", "1", "--numParallelCollections", "1", "--resume"],
        );
        assert_eq!(fs::metadata(out.join("big/things.bson")).expect("written").len() / 100_000, 600);
    }
}

#[test]
fn the_lab_gives_up_and_ends_when_asked() {
    let _alone = alone();
    const LONG: &str = "[[phase]]\nname = 'insert'\noperation.insert = {}\nload = { duration = '60s' }\n";
    let running = Running::start();
    let uri = format!("mongodb://{}/", running.address());
    let lab = Lab::with_phases(LONG);
    let has_begun = || running.peer().text(DATABASE, "{count: 'documents'}") != "{n: 0, ok: 1.0}";
    let mut run = lab.start(&uri, &["--server-timeout", "2"]);
    wait_until("it inserts", has_begun);
    signal(running.server.pid(), Signal::STOP);
    exit_of(&mut run);
    let done = Done::of(run);
    signal(running.server.pid(), Signal::CONT);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("no answer for 2 s"), "{}", done.stderr);

    let lab = Lab::with_phases(LONG);
    running.peer().run(DATABASE, "{dropDatabase: 1}");
    let mut run = lab.start(&uri, &["--drop", DATABASE, "--server-timeout", FOR_EVER_S]);
    wait_until("it inserts", has_begun);
    signal(running.server.pid(), Signal::STOP);
    lab::signal(&run, Signal::INT);
    exit_of(&mut run);
    let done = Done::of(run);
    signal(running.server.pid(), Signal::CONT);
    assert!(matches!(done.code, Some(130 | 1 | 2)), "{:?}: {}", done.code, done.stderr);
}

#[test]
fn a_server_that_is_not_there_is_told_soon() {
    let _alone = alone();
    // A port without a listener.
    let port = fixed_port();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        command.args(arguments).args(["--port", &port.to_string(), "--server-timeout", "1"]);
        command
    };
    let output = command(&["dump", "--archive=/dev/null"]).output().expect("the tool runs");
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("no MongoDB server reached") && said.contains("within 1 s"), "{said}");
}
