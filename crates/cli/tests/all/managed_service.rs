//! A server under a service manager: what it tells, the sockets that it takes over, and the pages and health checks
//! that packages need. The test is the manager.

use crate::peer::{Peer, binary};
use crate::refusal;
use bunko_testkit::process::temporary_dbpath;
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Longest wait for a message of the server.
const PATIENCE: Duration = Duration::from_mins(1);
/// Makes standard input descriptor 3, as a manager would, for the program in the arguments.
const HAND_OVER: &str = r#"exec 3<&0 </dev/null; export LISTEN_PID=$$; exec "$@""#;

/// A child that is killed when dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Service {
    fn stop(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("a child may be signalled");
        assert!(self.0.wait().expect("a child can be waited for").success());
    }
}

/// `bunko serve` with a socket in descriptor 3.
fn command(dbpath: &Path, socket: OwnedFd) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", HAND_OVER, "sh"]).arg(binary()).args(["serve", "--no-unix-socket", "--dbpath"]).arg(dbpath);
    command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::piped()).env("LISTEN_FDS", "1");
    command
}

fn received(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 4096];
    let length = manager.recv(&mut bytes).expect("the server tells its manager");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

fn bunko(arguments: &[&str]) -> Output {
    Command::new(binary()).args(arguments).stdin(Stdio::null()).output().expect("it can be run")
}

#[test]
fn a_manager_hears_of_the_start_and_the_end_and_keeps_its_socket() {
    let directory = temporary_dbpath();
    let manager = UnixDatagram::bind(directory.path().join("notify")).expect("bound");
    manager.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let kept = listener.try_clone().expect("a second descriptor");
    let mut command = command(&directory.path().join("db"), listener.into());
    command.env("NOTIFY_SOCKET", directory.path().join("notify")).stderr(Stdio::null());
    let service = Service(command.spawn().expect("it can be run"));
    assert_eq!(received(&manager), "STATUS=Opening the data directory");
    assert_eq!(received(&manager), "READY=1\nSTATUS=Waiting for connections");
    assert_eq!(Peer::connect(address).text("admin", "{ping: 1}"), "{ok: 1.0}");
    let pinged = bunko(&["ping", &format!("mongodb://{address}")]);
    assert_eq!(pinged.status.code(), Some(0), "{pinged:?}");
    service.stop();
    assert_eq!(received(&manager), "STOPPING=1\nSTATUS=Writing a checkpoint");
    assert_eq!(kept.local_addr().expect("still bound"), address);
}

#[test]
fn sockets_that_cannot_be_used_are_named() {
    let directory = temporary_dbpath();
    let dbpath = directory.path().join("db");
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let mut two = command(&dbpath, listener().into());
    two.env("LISTEN_FDS", "2");
    let mut many = command(&dbpath, listener().into());
    many.env("LISTEN_FDS", "many");
    let mut relative = command(&dbpath, listener().into());
    relative.env("NOTIFY_SOCKET", "run/notify");
    for (mut command, expected) in [
        (two, "bunko: LISTEN_FDS=2: descriptor 4 is not open: Bad file descriptor"),
        (many, "bunko: LISTEN_FDS=many is not a whole number within 0 to 64"),
        (relative, "bunko: NOTIFY_SOCKET=run/notify: it is neither a path nor @NAME"),
        (command(&dbpath, datagrams.into()), "it does not listen for connections (ListenStream=)"),
    ] {
        let refused = command.output().expect("it can be run");
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(refusal::FAILED), "{text}");
        assert!(text.contains(expected), "'{expected}' is not in: {text}");
    }
    assert!(!dbpath.exists(), "a refused start makes nothing");
}

#[test]
fn a_server_that_does_not_answer_is_unhealthy() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = format!("mongodb://{}", silent.local_addr().expect("bound"));
    for (arguments, status, expected) in [
        (&["ping", "mongodb://127.0.0.1:1"][..], 1, "127.0.0.1:1: "),
        (&["ping", "--timeout", "1", &silent], 1, "bunko: 127.0.0.1:"),
        (&["ping", "http://127.0.0.1"], 2, "bunko: "),
        (&["ping", "--timeout", "0"], 2, "--timeout"),
    ] {
        let output = bunko(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn completions_and_manual_pages_have_every_command_and_flag() {
    for shell in ["bash", "zsh", "fish"] {
        let output = bunko(&["completions", shell]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{shell}");
        for word in ["serve", "dump", "restore", "bench", "ping", "bind-ip", "cache-size-gb", "numInsertionWorkers"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    let directory = temporary_dbpath();
    let place = directory.path().to_str().expect("UTF-8");
    assert!(bunko(&["man", place]).status.success());
    let page = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("a page");
    assert!(page("bunko.1").contains("bunko\\-serve(1)"));
    assert!(page("bunko-serve.1").contains("\\-\\-bind\\-ip") && page("bunko-ping.1").contains("Exit statuses"));
    let missing = bunko(&["man", "/nonexistent/pages"]);
    assert_eq!(missing.status.code(), Some(refusal::FAILED));
    assert!(String::from_utf8_lossy(&missing.stderr).starts_with("bunko: cannot write manual pages into /nonexistent"));
}
