//! The harness starts, stops and loses servers, here shell scripts.

use bunko_testkit::process::{Server, fixed_port, temporary_dbpath};
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const FAKE_SERVER: &str = r#"#!/bin/sh
echo "arguments: $*"
case "$*" in
  *--fail*) echo "cannot open" >&2; exit 3;;
esac
trap 'echo "goodbye"; exit 7' TERM
echo "listening on mongodb://127.0.0.1:40001/" >&2
while :; do sleep 0.02; done
"#;

/// Written before any test forks: an inherited open file would make the script "busy" for the next test.
static BINARY: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let directory = temporary_dbpath();
    let path = directory.path().join("fake-server");
    fs::write(&path, FAKE_SERVER).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    (directory, path)
});

fn start(extra_args: &[&str]) -> Result<Server, String> {
    Server::start(&BINARY.1, Path::new("/data"), extra_args)
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_starts_and_terminates() {
    let mut server = start(&["--verbose"]).expect("started");
    assert_eq!(server.address().to_string(), "127.0.0.1:40001");
    assert!(runs(server.pid()));
    assert_eq!(server.terminate().code(), Some(7));
    assert_eq!(server.terminate().code(), Some(7), "asking again is harmless");
    let output = server.output_tail();
    assert!(output.contains("arguments: serve --dbpath /data --port 0 --unix-socket-prefix /"), "{output}");
    assert!(output.contains(" --verbose\n"), "{output}");
    assert!(output.ends_with("goodbye\n"), "{output}");
}

#[test]
fn fixed_ports_are_free_and_differ() {
    let ports: Vec<_> = (0..50).map(|_| fixed_port()).collect();
    let different: BTreeSet<_> = ports.iter().collect();
    assert_eq!(different.len(), ports.len(), "{ports:?}");
    // Linux gives ports from 32768 on to clients, and to listeners that ask for any port.
    assert!(ports.iter().all(|port| (10_000..20_000).contains(port)), "{ports:?}");
    let held: Vec<_> = ports.iter().filter_map(|port| TcpListener::bind(("127.0.0.1", *port)).ok()).collect();
    assert!(!held.is_empty(), "all of {ports:?} are taken");
}

#[test]
fn a_killed_server_says_no_goodbye() {
    let mut server = start(&[]).expect("started");
    server.kill();
    server.kill();
    assert!(!runs(server.pid()));
    assert_eq!(server.terminate().signal(), Some(9));
    assert!(!server.output_tail().contains("goodbye"));
}

#[test]
fn a_dropped_server_is_gone() {
    let server = start(&[]).expect("started");
    let pid = server.pid();
    drop(server);
    assert!(!runs(pid));
}

#[test]
fn a_failed_start_shows_the_output() {
    let error = start(&["--fail"]).expect_err("exits at once");
    assert!(error.contains("exited (exit status: 3)"), "{error}");
    assert!(error.contains("cannot open\n"), "{error}");
    let error = Server::start(Path::new("/no/such/binary"), Path::new("/data"), &[]).expect_err("no binary");
    assert!(error.starts_with("cannot run /no/such/binary: "), "{error}");
}
