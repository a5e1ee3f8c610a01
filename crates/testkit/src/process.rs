//! A server as a child process that can be killed and started again: the base of the crash harness.
//!
//! It uses real processes and real signals: only with them is data lost that a server forgot to pass to the kernel.

mod output;

use crate::patience::{self, PATIENCE};
use output::Output;
use rustix::process::{Pid, Signal, kill_process};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for a started server to print its address.
pub const READY_TIMEOUT: Duration = PATIENCE;
/// Longest wait for a signalled server to exit.
pub const EXIT_TIMEOUT: Duration = PATIENCE;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An empty directory for a server's data; it is removed with its contents when dropped.
///
/// # Panics
/// If the system's directory for temporary files is full.
pub fn temporary_dbpath() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("bunko-dbpath-").tempdir().expect("a temporary directory")
}

/// A port of this machine for a server that must know its port before it starts, or that comes back at the same one.
///
/// The system gives no such port to a client or to a listener that asks for any port, so none takes it while the server is
/// down. No two calls of a process return the same one; processes begin at different ones.
///
/// # Panics
/// If all ports of the range are taken.
pub fn fixed_port() -> u16 {
    const PORTS: std::ops::Range<u16> = 10_000..20_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let count = PORTS.len() as u32;
    // Ids of processes that run beside each other are close: a large step keeps their ports apart.
    let begin = std::process::id().wrapping_mul(977) % count;
    let mut ports = (0..count).map(|_| {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        PORTS.start + ((begin + call) % count) as u16
    });
    ports.find(is_free).expect("a free port from 10000 to 19999")
}

/// A running server; it is killed when dropped, so that a failed test leaves no process behind.
#[derive(Debug)]
pub struct Server {
    child: Reaped,
    address: SocketAddr,
    output: Output,
    /// Directory of its Unix domain socket, so that a killed server leaves no socket behind.
    _sockets: Option<tempfile::TempDir>,
}

/// A child that is killed and waited for when dropped.
#[derive(Debug)]
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Both fail only if the child has been waited for already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Runs `binary serve --dbpath <dbpath> --port 0 --unix-socket-prefix <temporary> <extra_args>` and waits as
    /// [`Server::run`] does.
    /// # Errors
    /// As [`Server::run`].
    pub fn start(binary: &Path, dbpath: &Path, extra_args: &[&str]) -> Result<Self, String> {
        let sockets = tempfile::Builder::new().prefix("bunko-sockets-").tempdir();
        let sockets = sockets.map_err(|error| format!("no directory for sockets: {error}"))?;
        let mut command = Command::new(binary);
        command.args(["serve", "--dbpath"]).arg(dbpath).args(["--port", "0", "--unix-socket-prefix"]);
        command.arg(sockets.path()).args(extra_args);
        Ok(Self { _sockets: Some(sockets), ..Self::spawn(command)? })
    }

    /// Runs `binary serve <arguments>` and waits until it prints a line with its `mongodb://` address.
    /// # Errors
    /// A text with the end of the server's output, if it cannot be run, exits, or prints no address within
    /// [`READY_TIMEOUT`].
    pub fn run(binary: &Path, arguments: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(binary);
        command.arg("serve").args(arguments);
        Self::spawn(command)
    }

    /// Runs a command that becomes a server, and waits as [`Server::run`] does.
    /// # Errors
    /// As [`Server::run`].
    pub fn spawn(mut command: Command) -> Result<Self, String> {
        let deadline = Instant::now() + READY_TIMEOUT;
        let binary = PathBuf::from(command.get_program());
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map(Reaped).map_err(|error| format!("cannot run {}: {error}", binary.display()))?;
        let (output, lines) = Output::capture(&mut child.0);
        while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if let Some(address) = output::address(&line) {
                return Ok(Self { child, address, output, _sockets: None });
            }
        }
        // No address arrived: both pipes are closed, or time ran out.
        let state = match wait(&mut child.0, deadline) {
            Some(status) => format!("exited ({status})"),
            None => format!("printed no address within {READY_TIMEOUT:?}"),
        };
        Err(format!("{} {state}; its output:\n{}", binary.display(), output.tail()))
    }

    /// Runs a command that becomes a server whose log goes to the file `log`, and waits as [`Server::run`] does.
    /// # Errors
    /// As [`Server::run`].
    pub fn spawn_with_log(mut command: Command, log: &Path) -> Result<Self, String> {
        let deadline = Instant::now() + READY_TIMEOUT;
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map(Reaped).map_err(|error| format!("cannot run {command:?}: {error}"))?;
        let (output, _lines) = Output::capture(&mut child.0);
        loop {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            if let Some(address) = text.lines().find_map(output::address) {
                return Ok(Self { child, address, output, _sockets: None });
            }
            if let Some(status) = child.0.try_wait().expect("a child can be waited for") {
                return Err(format!("exited ({status}); its output:\n{}{text}", output.tail()));
            }
            if Instant::now() >= deadline {
                return Err(format!(
                    "printed no address within {READY_TIMEOUT:?}; its output:\n{}{text}",
                    output.tail()
                ));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Number of files that it has open in a directory of that name, including deleted ones.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn open_files_in(&self, directory: &str) -> usize {
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("a process that runs");
        let targets = descriptors.flatten().filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
        targets.filter(|target| target.parent().is_some_and(|parent| parent.ends_with(directory))).count()
    }

    /// The last lines of its standard output and standard error, in the order of arrival.
    pub fn output_tail(&self) -> String {
        self.output.tail()
    }

    /// Waits until its output contains those words, and returns the first line with them: log lines arrive a little later
    /// than replies.
    ///
    /// # Panics
    /// If they do not arrive within [`patience::PATIENCE`], with the end of its output.
    #[track_caller]
    pub fn logged(&self, words: &str) -> String {
        patience::wait_for(|| {
            let tail = self.output.tail();
            patience::line_with(&tail, words).ok_or_else(|| format!("'{words}' is not in the log:\n{tail}"))
        })
    }

    /// Kills it with SIGKILL, which no process can handle, and waits until it is gone. Does nothing if it has exited
    /// before.
    ///
    /// # Panics
    /// If the system does not let the process be killed or waited for.
    pub fn kill(&mut self) {
        self.child.0.kill().expect("a child may be killed");
        self.child.0.wait().expect("a child can be waited for");
        self.output.finish();
    }

    /// Asks it to stop with SIGTERM and waits until it has; returns the exit status, also of a process that has exited
    /// before.
    ///
    /// # Panics
    /// If it still runs after [`EXIT_TIMEOUT`], with the end of its output.
    pub fn terminate(&mut self) -> ExitStatus {
        // A process that has been waited for has no id any more: the number may belong to another process.
        if let Some(status) = self.child.0.try_wait().expect("a child can be waited for") {
            return status;
        }
        kill_process(Pid::from_child(&self.child.0), Signal::TERM).expect("a child may be signalled");
        let status = wait(&mut self.child.0, Instant::now() + EXIT_TIMEOUT).unwrap_or_else(|| {
            panic!("still running {EXIT_TIMEOUT:?} after SIGTERM; its output:\n{}", self.output.tail())
        });
        self.output.finish();
        status
    }

    /// As [`Server::terminate`], for a server that must exit with success.
    ///
    /// # Panics
    /// If it does not, with its exit status and the end of its output.
    pub fn stop(&mut self) {
        let status = self.terminate();
        assert!(status.success(), "after SIGTERM: {status}; its output:\n{}", self.output.tail());
    }
}

/// Waits for a child to exit.
///
/// # Panics
/// If it still runs after [`PATIENCE`]; it is killed then.
#[track_caller]
pub fn exit_of(child: &mut Child) -> ExitStatus {
    wait(child, Instant::now() + PATIENCE).unwrap_or_else(|| {
        let _ = child.kill();
        panic!("process {} does not end", child.id())
    })
}

/// Waits for a child to exit; `None` if it has not exited by the deadline.
fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        // The standard library cannot wait with a limit, so this polls.
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(POLL_INTERVAL);
    }
}
