//! The ways in which tools get passwords: a file, a terminal, and none.

use crate::peer::{Running, binary};
use crate::shell::Typist;
use bunko_testkit::process::exit_of;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The password of the tests' user, which appears nowhere. YAML would read it as a number.
const PASSWORD: &str = "0314159265";

/// A server with the user `ann` and a collection.
fn start() -> Running {
    let server = Running::start();
    let create = format!("{{createUser: 'ann', pwd: '{PASSWORD}', roles: ['root']}}");
    assert!(server.peer().text("admin", &create).contains("ok: 1"));
    let insert = "{insert: 'books', documents: [{_id: 1, title: 'Kokoro'}]}";
    assert!(server.peer().text("shop", insert).contains("n: 1"));
    server
}

/// A tool without a terminal.
fn run(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new("setsid");
    command.arg(binary()).args(arguments).current_dir(directory).stdin(Stdio::null());
    command.output().expect("setsid runs")
}

fn said(output: &Output) -> String {
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains(PASSWORD), "the password is shown: {said}");
    said
}

/// Every tool that logs in, with flags that let it end at once.
const TOOLS: [&[&str]; 10] = [
    &["dump", "--archive=dump.archive"],
    &["restore", "--archive=dump.archive", "--drop"],
    &["export", "--db=shop", "--collection=books", "--out=books.json"],
    &["import", "--db=shop", "--collection=books", "--mode=upsert", "--file=books.json"],
    &["stat", "--rowcount=1", "--noheaders"],
    &["top", "--rowcount=1"],
    &["sample", "library", "--drop"],
    &["check"],
    &["advise"],
    &["shell", "--quiet", "--eval=db.getSiblingDB('shop').books.countDocuments()"],
];

#[test]
fn every_tool_reads_passwords_from_a_file() {
    let server = start();
    let address = server.address();
    let directory = tempfile::tempdir().expect("writable");
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("written");
    write("password", &format!("password: {PASSWORD}\n"));
    write("wrong", "password: wrong\n");
    write("uri", &format!("uri: mongodb://ann:{PASSWORD}@{address}/?authSource=admin\n"));
    write("both", &format!("uri: mongodb://ann@{address}/?authSource=admin\npassword: {PASSWORD}\n"));
    let host = format!("--host={address}");
    let user = [host.as_str(), "--username=ann", "--authenticationDatabase=admin"];
    for tool in TOOLS {
        let succeeds = |flags: &[&str]| {
            let output = run(&[tool, flags].concat(), directory.path());
            let said = said(&output);
            // 3 is the status of a report that has found something.
            assert!(matches!(output.status.code(), Some(0 | 3)), "{tool:?} {flags:?}: {said}");
        };
        succeeds(&[&user[..], &["--config=password"]].concat());
        succeeds(&["--config=uri"]);
        succeeds(&["--config=both"]);
        let output = run(&[tool, &user[..], &["--config=wrong"]].concat(), directory.path());
        let refusal = said(&output);
        assert!(refusal.contains("Authentication failed") && !output.status.success(), "{tool:?}: {refusal}");
    }
    let mut peer = server.peer();
    assert!(peer.text("shop", "{count: 'books'}").contains("n: 1"));
    write(
        "copy",
        &format!("from: mongodb://ann:{PASSWORD}@{address}/?authSource=admin\nto: mongodb://ann@{address}/\n"),
    );
    // The second password is in no file, and there is no terminal.
    let output = run(&["copy", "--config=copy"], directory.path());
    assert!(said(&output).contains("--to: the user 'ann' needs a password"), "{output:?}");
    let other = Running::start();
    write(
        "copy",
        &format!("from: mongodb://ann:{PASSWORD}@{address}/?authSource=admin\nto: mongodb://{}/\n", other.address()),
    );
    let output = run(&["copy", "--db=shop", "--config=copy"], directory.path());
    assert!(output.status.success(), "{}", said(&output));
    assert!(other.peer().text("shop", "{count: 'books'}").contains("n: 1"));
}

#[test]
fn without_a_terminal_no_question_is_asked_and_contradictions_are_refused() {
    let directory = tempfile::tempdir().expect("writable");
    fs::write(directory.path().join("secrets"), "uri: mongodb://h:1/\n").expect("written");
    fs::write(directory.path().join("plain"), PASSWORD).expect("written");
    for (flags, words) in [
        (&["--username=ann"][..], "the user 'ann' needs a password, and there is no terminal to ask at"),
        (&["--username=ann", "--password"], "the user 'ann' needs a password, and there is no terminal to ask at"),
        (&["--uri=mongodb://ann@h/"], "the user 'ann' needs a password, and there is no terminal to ask at"),
        (&["--config=secrets", "--host=h"], "--host h: the connection string names the hosts"),
        (&["--config=missing"], "--config missing: No such file"),
        (&["--config=plain"], "--config plain: it has to have lines 'KEY: TEXT'"),
        (&["--uri=shop"], "--uri: "),
    ] {
        for tool in [&["export", "--collection=c"][..], &["stat"]] {
            let output = run(&[tool, flags].concat(), directory.path());
            let said = said(&output);
            assert!(said.contains(words) && matches!(output.status.code(), Some(1 | 2)), "{tool:?} {flags:?}: {said}");
        }
    }
    let output = run(&["dump", "--dbpath=d", "--config=secrets"], directory.path());
    assert!(said(&output).contains("--config") && output.status.code() == Some(2), "{output:?}");
}

#[test]
fn a_user_is_asked_at_the_terminal_which_shows_no_password() {
    let server = start();
    let directory = tempfile::tempdir().expect("writable");
    let out = directory.path().join("books.json");
    let uri = format!("mongodb://ann@{}/shop?authSource=admin", server.address());
    let at_terminal = |script: &str| {
        // A session of its own, whose terminal is the typist's.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "sh", "-c", script]).env("BUNKO", binary()).env("URI", &uri).env("OUT", &out);
        Typist::run(command)
    };
    // Standard input is the import's, and the terminal is asked nevertheless.
    let mut import =
        at_terminal(r#"echo '{"_id": 2}' | "$BUNKO" import --uri "$URI" -c books --quiet; echo "ended $?""#);
    import.sees("Password of ann: ");
    import.types(&format!("{PASSWORD}\n"), "ended 0");
    assert!(!import.seen.contains(PASSWORD), "{}", import.seen);
    exit_of(&mut import.child);
    let mut export = at_terminal(
        r#""$BUNKO" export --host "$(echo "$URI" | cut -d@ -f2 | cut -d/ -f1)" -u ann --authenticationDatabase admin \
           -d shop -c books --quiet --out "$OUT" -p; echo "ended $?""#,
    );
    export.sees("Password of ann: ");
    export.types("wrong\n", "ended 1");
    assert!(export.seen.contains("Authentication failed"), "{}", export.seen);
    exit_of(&mut export.child);
    assert!(!out.exists());
    let mut shell = at_terminal(r#""$BUNKO" shell --quiet "$URI" --eval 'db.books.countDocuments()'; echo "ended $?""#);
    shell.sees("Password of ann: ");
    shell.types(&format!("{PASSWORD}\n"), "ended 0");
    assert!(shell.seen.contains("\n2\r") && !shell.seen.contains(PASSWORD), "{}", shell.seen);
    exit_of(&mut shell.child);
    let mut interrupted = at_terminal(r#""$BUNKO" dump --uri "$URI" --archive="$OUT"; echo "ended $?""#);
    interrupted.sees("Password of ann: ");
    interrupted.types("\x03", "ended 1");
    exit_of(&mut interrupted.child);
    assert!(!out.exists());
}
