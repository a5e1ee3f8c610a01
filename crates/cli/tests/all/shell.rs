//! `bunko shell` as a process, against a server: the scripts in `crates/shell/tests`, Ctrl-C, and servers that cannot
//! be used.

use crate::peer::{Running, binary};
use bunko_testkit::patience::{PATIENCE, wait_until};
use bunko_testkit::process::{Server, exit_of, temporary_dbpath};
use bunko_testkit::script::{self, Case};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn shell(uri: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(["shell", "--quiet", uri]).env("BUNKO_TEST_VARIABLE", "of the test").stdin(Stdio::null());
    command
}

/// Output and status of a shell, for a script to show.
fn shown(output: &Output) -> String {
    let mut shown = String::from_utf8_lossy(&output.stdout).replace('\r', "<CR>");
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        let _ = writeln!(shown, "error: {line}");
    }
    if output.status.code() != Some(0) {
        let _ = writeln!(shown, "status {}", output.status.code().unwrap_or(-1));
    }
    shown
}

fn typed(mut command: Command, input: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A shell that ends early reads no more.
    let _ = stdin.write_all(format!("{input}\n").as_bytes());
    drop(stdin);
    child.wait_with_output().expect("ended")
}

fn run_file(uri: &str, text: &str) -> Output {
    let directory = tempfile::tempdir().expect("writable");
    let file = directory.path().join("script.js");
    fs::write(&file, text).expect("written");
    shell(uri).arg(&file).env("BUNKO_TEST_DIRECTORY", directory.path()).output().expect("the shell runs")
}

#[test]
fn scripts_print_what_they_print_in_mongosh() {
    let alone = Running::start();
    let dbpath = temporary_dbpath();
    let set = Server::start(&binary(), dbpath.path(), &["--replSet", "rs", "--replSetHost", "127.0.0.1:1"])
        .expect("the server starts");
    let (alone, set) = (format!("mongodb://{}/test", alone.address()), format!("mongodb://{}/test", set.address()));
    let evaluated =
        |format: &[&str], text: &str| shell(&alone).args(format).args(["--eval", text]).output().expect("it runs");
    script::run("../shell/tests/scripts", |Case { directive, input }| {
        shown(&match directive.as_str() {
            "script" => run_file(&alone, input),
            "set" => run_file(&set, input),
            "typed" => typed(shell(&alone), input),
            "eval" => evaluated(&[], input),
            "json" => evaluated(&["--json=canonical"], input),
            "relaxed" => evaluated(&["--json=relaxed"], input),
            other => return format!("unknown directive {other}"),
        })
    });
}

/// Starts a server with init scripts, and shows what a client finds, or why the server did not start and does not start
/// again.
fn initialized(text: &str) -> String {
    let (directory, scripts) = (temporary_dbpath(), tempfile::tempdir().expect("writable"));
    let dbpath = directory.path().join("data");
    let programs = tempfile::tempdir().expect("writable");
    for name in ["bunko", "mongosh", "mongodump", "mongorestore", "mongostat", "mongotop"] {
        link(programs.path(), name);
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut parts = text.split("== ");
    let environment = parts.next().unwrap_or_default().lines().filter_map(|line| line.split_once('='));
    let mut command = Command::new(binary());
    command.args(["serve", "--port", "0", "--log-format", "json", "--dbpath"]).arg(&dbpath);
    command.env("BUNKO_INITDB_DIRECTORY", scripts.path()).env("BUNKO_TEST_DIRECTORY", directory.path());
    command.env("PATH", format!("{}:{path}", programs.path().display())).envs(environment);
    let mut check = "";
    for part in parts {
        match part.split_once('\n') {
            Some(("check", text)) => check = text,
            Some((name, text)) => {
                let mode = if name.starts_with("program") { 0o755 } else { 0o644 };
                let file = scripts.path().join(name);
                fs::write(&file, text).expect("written");
                fs::set_permissions(&file, Permissions::from_mode(mode)).expect("changed");
            }
            None => {}
        }
    }
    let output = |error: &str| {
        let said = error.lines().filter(|line| line.starts_with("bunko: ") && !line.contains("bunko: running "));
        let said = said.collect::<Vec<_>>().join("\n");
        let of_scripts = said.replace(&scripts.path().display().to_string(), "SCRIPTS");
        of_scripts.replace(&dbpath.display().to_string(), "DATA")
    };
    match Server::spawn(command) {
        Ok(server) => shown(&run_file(&format!("mongodb://{}/", server.address()), check)),
        Err(error) => {
            let is_half_made = dbpath.join("unfinished-initialization").exists();
            format!("{}\nhalf made: {is_half_made}", output(&error))
        }
    }
}

#[test]
fn init_scripts_run_on_an_empty_directory() {
    script::run("../shell/tests/init_scripts", |case| initialized(&case.input));
}

#[test]
fn a_start_goes_on_only_from_a_whole_initialization() {
    let directory = temporary_dbpath();
    fs::write(directory.path().join("unfinished-initialization"), "").expect("written");
    let output = Command::new(binary()).args(["serve", "--port", "0", "--dbpath"]).arg(directory.path()).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is half made; empty it"), "{output:?}");
}

#[test]
fn a_signal_ends_the_init_script_that_runs_and_the_next_start_says_so() {
    for (name, text) in [
        ("a.js", "print('begun'); for (;;) {}"),
        ("a.sh", "echo begun; sleep 100000"),
        // A script that does not heed the signal.
        ("a.sh", "trap '' TERM; echo begun; sleep 100000; sleep 100000"),
    ] {
        let (directory, scripts) = (temporary_dbpath(), tempfile::tempdir().expect("writable"));
        fs::write(scripts.path().join(name), text).expect("written");
        let start = || {
            let mut command = Command::new(binary());
            command.args(["serve", "--port", "0", "--log-format", "json", "--dbpath"]).arg(directory.path());
            command.env("BUNKO_INITDB_DIRECTORY", scripts.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("started")
        };
        let mut server = start();
        // The server for the scripts writes there, too.
        let output = BufReader::new(server.stdout.take().expect("a pipe"));
        assert!(output.lines().any(|line| line.is_ok_and(|line| line == "begun")), "{text}");
        let pid = Pid::from_raw(server.id().cast_signed()).expect("a process");
        kill_process(pid, Signal::TERM).expect("signalled");
        let ended = server.wait_with_output().expect("ended");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{text}: {said}");
        assert!(said.contains(&format!("bunko: SIGTERM before {}", scripts.path().display())), "{text}: {said}");
        let again = start().wait_with_output().expect("ended");
        assert_eq!(again.status.code(), Some(2), "{text}");
        assert!(String::from_utf8_lossy(&again.stderr).contains("is half made; empty it"), "{text}");
    }
}

/// Ctrl-C ends a script of the command line, and its operation on the server, which has the comment.
fn assert_interruptible(script: &str, comment: Option<&str>) {
    let server = Running::start();
    let uri = format!("mongodb://{}/test", server.address());
    let mut command = shell(&uri);
    command.args(["--eval", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("started");
    let mut peer = server.peer();
    let mut runs = |comment: &str| {
        let pipeline =
            format!("[{{$currentOp: {{}}}}, {{$match: {{'command.comment': '{comment}'}}}}, {{$count: 'n'}}]");
        peer.text("admin", &format!("{{aggregate: 1, cursor: {{}}, pipeline: {pipeline}}}")).contains("n: 1")
    };
    match comment {
        Some(comment) => wait_until("the operation runs", || runs(comment)),
        None => {
            let output = running.stdout.as_mut().expect("a pipe");
            output.read_exact(&mut [0]).expect("the script has begun");
        }
    }
    let pid = Pid::from_raw(running.id().cast_signed()).expect("a process");
    kill_process(pid, Signal::INT).expect("signalled");
    assert_eq!(exit_of(&mut running).code(), Some(130), "{script}");
    if let Some(comment) = comment {
        wait_until("the operation has ended", || !runs(comment));
    }
    server.assert_serves();
}

#[test]
fn ctrl_c_ends_a_script_whatever_it_does() {
    for script in [
        "for (;;) {}",
        "sleep(1e9)",
        "try { for (;;) {} } finally { for (;;) {} }",
        "await new Promise(() => setInterval(() => {}, 1))",
    ] {
        assert_interruptible(&format!("print('begun'); {script}"), None);
    }
}

#[test]
fn ctrl_c_ends_the_wait_for_a_server_that_hangs() {
    let server = Running::start();
    let process = |id: u32| Pid::from_raw(id.cast_signed()).expect("a process");
    let mut command = shell(&format!("mongodb://{}/test", server.address()));
    let mut child = command
        .args(["--eval", "print('begun'); for (;;) db.hello()"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("the script has begun");
    kill_process(process(server.server.pid()), Signal::STOP).expect("signalled");
    kill_process(process(child.id()), Signal::INT).expect("signalled");
    assert_eq!(exit_of(&mut child).code(), Some(130));
    kill_process(process(server.server.pid()), Signal::CONT).expect("signalled");
    server.assert_serves();
}

#[test]
fn ctrl_c_kills_the_operation_of_the_server() {
    let find = "db.t.insertOne({}); db.t.find({$where: 'sleep(1000000) || true'}).comment('endless').toArray()";
    assert_interruptible(find, Some("endless"));
}

/// Whether a process exists that is more than an end whose status no parent has read.
fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_shell_ends_when_parent_and_reader_are_gone() {
    let mut command = Command::new("sh");
    let script = "\"$0\" shell --nodb --eval 'print(\"begun\"); sleep(1e9)' & echo $!; read end";
    command.args(["-c", script]).arg(binary()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut parent = command.spawn().expect("started");
    let mut output = BufReader::new(parent.stdout.take().expect("a pipe"));
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        output.read_line(line).expect("read");
    }
    let pid = lines.iter().find_map(|line| line.trim().parse().ok()).expect("the shell's process");
    // The end of its input ends `sh`.
    drop(parent.stdin.take());
    parent.wait().expect("ended");
    assert!(runs(pid), "its output has a reader");
    drop(output);
    wait_until("the shell ends", || !runs(pid));
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    let full = File::options().write(true).open("/dev/full").expect("opened");
    let mut command = Command::new(binary());
    command.args(["shell", "--nodb", "--eval", "print('lost')"]).stdin(Stdio::null());
    let output =
        command.stdout(full).stderr(Stdio::piped()).spawn().and_then(Child::wait_with_output).expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("bunko: standard output: "), "{said}");
}

#[test]
fn scripts_that_cannot_run_give_one_line_and_a_status() {
    let refuses = |arguments: &[&str], status: i32, words: &str| {
        let output =
            Command::new(binary()).arg("shell").args(arguments).stdin(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    let server = Running::start();
    let address = server.address().to_string();
    let uri = format!("mongodb://{address}/");
    refuses(&["mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100", "--eval", "1"], 1, "127.0.0.1:1");
    refuses(&[&uri, "-u", "me", "-p", "wrong", "--eval", "1"], 1, "AuthenticationFailed");
    refuses(&["mongodb://h/?nonsense=1", "--eval", "1"], 1, "nonsense");
    refuses(&["mongodb+srv://h/", "--eval", "1"], 1, "mongodb+srv");
    refuses(&[&uri, "--eval", "db.t.find({"], 1, "SyntaxError");
    refuses(&[&uri, "/nowhere/script.js"], 1, "/nowhere/script.js");
    refuses(&["--nodb", "--eval", "db.t.find()"], 1, "No connected database");
    refuses(&["--nodb", "mongodb://me:secret@h/"], 2, "mongodb://***@h/");
    refuses(&["--nodb", "--host", "h"], 2, "--host");
    refuses(&["one", "two"], 2, "two");
    refuses(&["one", "mongodb://me:secret@h/"], 2, "mongodb://***@h/");
    refuses(&["--host", "h", "other:1/db"], 2, "--host h");
    refuses(&["--heap-mb", "1", "--nodb"], 2, "--heap-mb");
}

/// A link to the binary, in a directory of the test.
fn link(directory: &Path, name: &str) -> Command {
    let link = directory.join(name);
    std::os::unix::fs::symlink(fs::canonicalize(binary()).expect("built"), &link).expect("linked");
    Command::new(link)
}

#[test]
fn a_link_with_the_name_of_a_program_of_mongodb_acts_as_it() {
    let directory = tempfile::tempdir().expect("writable");
    let mut mongosh = link(directory.path(), "mongosh");
    let output = mongosh.args(["--nodb", "--quiet", "--eval", "1 + 1"]).output().expect("it runs");
    assert_eq!(shown(&output), "2\n");
    let mut mongod = link(directory.path(), "mongod");
    let output = mongod.args(["--print-config", "--dbpath", "d"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("dbPath"), "{output:?}");
}

#[test]
fn a_password_need_not_stand_on_the_command_line() {
    let server = Running::start();
    let uri = format!("mongodb://{}/of_variable", server.address());
    let mut command = Command::new(binary());
    command.args(["shell", "--quiet", "--eval", "db"]).env("BUNKO_SHELL_URI", &uri).stdin(Stdio::null());
    assert_eq!(shown(&command.output().expect("it runs")), "of_variable\n");
    let mut asking = shell(&uri);
    asking.args(["-u", "me", "-p", "--eval", "1"]);
    let output = typed(asking, "hunter2");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("AuthenticationFailed") && !said.contains("hunter2"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_list_of_processes_shows_no_password() {
    let mut command = Command::new(binary());
    let uri = "mongodb://me:hunter1@127.0.0.1:1/?serverSelectionTimeoutMS=100000";
    command.args(["shell", uri, "-u", "you", "-phunter2", "--eval", "1"]).stderr(Stdio::null());
    let mut child = command.spawn().expect("started");
    let id = child.id();
    let listed = || fs::read_to_string(format!("/proc/{id}/cmdline")).expect("listed");
    wait_until("the passwords are hidden", || listed().contains("-pxxxxxxx"));
    assert!(listed().contains("me:xxxxxxx@127.0.0.1") && !listed().contains("hunter"), "{}", listed());
    child.kill().and_then(|()| child.wait()).expect("ended");
}

/// A program at a terminal of its own.
pub struct Typist {
    pub child: Child,
    terminal: File,
    /// The text that the program has written, with the codes that move the cursor.
    pub seen: String,
    home: tempfile::TempDir,
}

impl Typist {
    fn start(uri: &str) -> Self {
        Self::run(shell(uri))
    }

    pub fn run(mut command: Command) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("it may be opened");
        let name = ptsname(&terminal, Vec::new()).expect("its name").into_string().expect("UTF-8");
        let end = || Stdio::from(File::options().read(true).write(true).open(&name).expect("opened"));
        let home = tempfile::tempdir().expect("writable");
        command.env("HOME", home.path()).env_remove("XDG_STATE_HOME").env("TERM", "xterm").env("NO_COLOR", "1");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("started");
        Self { child, terminal: File::from(terminal), seen: String::new(), home }
    }

    /// Types a text, and waits until the program has written `expected` after it.
    pub fn types(&mut self, text: &str, expected: &str) {
        self.seen.clear();
        self.terminal.write_all(text.as_bytes()).expect("typed");
        self.sees(expected);
    }

    pub fn sees(&mut self, expected: &str) {
        let mut buffer = [0; 4096];
        while !self.seen.contains(expected) {
            let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&self.terminal, PollFlags::IN)], Some(&patience)).expect("waited");
            assert!(ready > 0, "no {expected}: {}", self.seen);
            let count = self.terminal.read(&mut buffer).unwrap_or(0);
            assert!(count > 0, "the program ended before {expected}: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }

    fn interrupts(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        kill_process(pid, Signal::INT).expect("signalled");
    }
}

#[test]
fn a_user_types_at_a_terminal() {
    let server = Running::start();
    let mut typist = Typist::start(&format!("mongodb://{}/shop", server.address()));
    typist.sees("shop> ");
    typist.types("db.books.insertOne({_id: 1, title: 'Kokoro'})\r", "acknowledged: true, insertedId: 1");
    // A script that goes on in the next line, and an error, after which the session goes on.
    typist.types("[1, 2].map((x) => {\rreturn x * 21\r})\r", "[ 21, 42 ]");
    typist.types("nothing.there\r", "ReferenceError: nothing is not defined");
    // Completion of a collection, a method, a word of the shell and an operator.
    typist.types("db.boo\t.countD\t{_id: 1}) + 41\r", "\n42");
    typist.types("show colle\t\r", "books");
    typist.types("db.books.aggregate([{$matc\t: {_id: 7}}]).toArray().length + 40\r", "\n40");
    // Ctrl-C ends a script, and the operation that the server runs for it, and the session goes on.
    typist.types("print('be' + 'gun'); for (;;) {}\r", "begun");
    typist.interrupts();
    typist.sees("interrupted");
    typist.types("db.books.find({$where: 'sleep(1000000) || true'}).comment('endless').toArray()\r", "endless");
    let mut peer = server.peer();
    let runs = "{aggregate: 1, cursor: {}, pipeline: [{$currentOp: {}}, {$match: {'command.comment': 'endless'}}, {$count: 'n'}]}";
    wait_until("the operation runs", || peer.text("admin", runs).contains("n: 1"));
    typist.interrupts();
    typist.sees("interrupted");
    wait_until("the operation has ended", || !peer.text("admin", runs).contains("n: 1"));
    typist.types("db.createUser({user: 'ann', pwd: 'hunter2', roles: []})\r", "ok: 1");
    typist.types("exit\r", "exit");
    assert!(exit_of(&mut typist.child).success());
    let history = fs::read_to_string(typist.home.path().join(".local/state/bunko/shell_history")).expect("kept");
    assert!(history.contains("Kokoro") && !history.contains("hunter2"), "{history}");
}
