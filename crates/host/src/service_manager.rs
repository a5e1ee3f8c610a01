//! The service manager that started this process, such as systemd: it hears what the process does, and may hand over
//! listening sockets.
//!
//! Rejected: the crate `sd-notify`. It does not turn descriptors into owned sockets either, and the rest is shorter than
//! its calls.
//! Source: sd_notify(3), sd_listen_fds(3), systemd.service(5).

use crate::process::{ProcessReading, ProcessUse};
use crate::raw_calls;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often a long step asks for more time.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// The time that a long step asks for: some attempts may come late on a busy machine.
const MORE_TIME: Duration = Duration::from_secs(30);
/// A step counts as working while this process uses more than one part in `WORK_SHARE` of a processor. Idle threads use
/// less.
const WORK_SHARE: u32 = 100;
/// Longest wait for a manager that reads no messages.
const SEND_MAX: Duration = Duration::from_secs(1);
/// Number of the first descriptor that a manager hands over.
const FIRST_INHERITED: i32 = 3;
/// Maximum number of sockets that a manager may hand over.
const INHERITED_MAX: i32 = 64;

/// A connection to the service manager.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
}

/// A long step that asks for more time until it is dropped.
#[derive(Debug)]
pub struct LongStep {
    _ended: Sender<()>,
}

impl ServiceManager {
    /// The manager at the address `NOTIFY_SOCKET`; `None` without that variable.
    /// # Errors
    /// If the address is neither a path nor an abstract name (`@NAME`).
    pub fn at(address: Option<OsString>) -> io::Result<Option<Self>> {
        let Some(address) = address.filter(|address| !address.is_empty()) else { return Ok(None) };
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(&address)?,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a path nor @NAME")),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_MAX))?;
        Ok(Some(Self { socket, address }))
    }

    /// Tells the manager `assignments`, such as `READY=1`, one a line.
    /// # Errors
    /// If the manager's socket is gone or full.
    pub fn tell(&self, assignments: &str) -> io::Result<()> {
        self.socket.send_to_addr(assignments.as_bytes(), &self.address).map(drop)
    }

    /// Asks for more time while a step of the start or of the shutdown works, until the result is dropped. A step that
    /// hangs uses no processor and reads and writes nothing, and gets no more time.
    /// # Errors
    /// If no thread can be started.
    pub fn begin_long_step(&self) -> io::Result<LongStep> {
        self.ask_every(ASK_AGAIN)
    }

    fn ask_every(&self, interval: Duration) -> io::Result<LongStep> {
        let manager = Self { socket: self.socket.try_clone()?, address: self.address.clone() };
        let (ended, has_ended) = channel();
        let ask = move || {
            let pid = std::process::id();
            let mut before = ProcessReading::of(pid);
            while has_ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let now = ProcessReading::of(pid);
                if let (Some(now), Some(before)) = (&now, &before)
                    && has_worked(&now.since(before), interval)
                {
                    // The manager's own limit holds if this fails.
                    let _ = manager.tell(&format!("EXTEND_TIMEOUT_USEC={}", MORE_TIME.as_micros()));
                }
                before = now;
            }
        };
        std::thread::Builder::new().name("long-step".into()).spawn(ask)?;
        Ok(LongStep { _ended: ended })
    }
}

fn has_worked(used: &ProcessUse, interval: Duration) -> bool {
    used.cpu >= interval / WORK_SHARE
        || [used.read_bytes, used.written_bytes].into_iter().flatten().any(|bytes| bytes > 0)
}

/// Takes over the sockets that the service manager has opened for this process: those from descriptor 3 on, as many as
/// `LISTEN_FDS` says, if `LISTEN_PID` is this process. Each can be taken only once; a second call returns none.
/// # Errors
/// A sentence that names the variable, or the descriptor that is not open.
pub fn take_inherited_sockets(variable: impl Fn(&'static str) -> Option<String>) -> Result<Vec<OwnedFd>, String> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let count = inherited_count(variable)?;
    if count == 0 || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let take = |number| {
        raw_calls::take_inherited(number)
            .map_err(|error| format!("LISTEN_FDS={count}: descriptor {number} is not open: {error}"))
    };
    (FIRST_INHERITED..FIRST_INHERITED + count).map(take).collect()
}

fn inherited_count(variable: impl Fn(&'static str) -> Option<String>) -> Result<i32, String> {
    let Some(count) = variable("LISTEN_FDS") else { return Ok(0) };
    // The variables may have been set for the program that started this one.
    if variable("LISTEN_PID").and_then(|pid| pid.parse().ok()) != Some(std::process::id()) {
        return Ok(0);
    }
    match count.parse() {
        Ok(count) if (0..=INHERITED_MAX).contains(&count) => Ok(count),
        _ => Err(format!("LISTEN_FDS={count} is not a whole number within 0 to {INHERITED_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 100];
        let length = socket.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn paths_and_abstract_names_are_told() {
        let directory = tempfile::tempdir().expect("writable");
        let path = directory.path().join("notify");
        let at_path = UnixDatagram::bind(&path).expect("bound");
        let name = format!("bunko-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("an address");
        let abstract_socket = UnixDatagram::bind_addr(&address).expect("bound");
        for (address, socket) in [(path.into_os_string(), &at_path), (format!("@{name}").into(), &abstract_socket)] {
            let manager = ServiceManager::at(Some(address)).expect("an address").expect("a manager");
            manager.tell("READY=1").expect("told");
            assert_eq!(received(socket), "READY=1");
        }
    }

    #[test]
    fn without_a_variable_there_is_no_manager() {
        for address in [None, Some(OsString::new())] {
            assert!(ServiceManager::at(address).expect("valid").is_none());
        }
        assert!(ServiceManager::at(Some("run/notify".into())).is_err());
        let gone = ServiceManager::at(Some("/nonexistent/notify".into())).expect("an address").expect("a manager");
        assert!(gone.tell("READY=1").is_err());
    }

    #[test]
    fn work_is_cpu_or_device_traffic() {
        let idle = ProcessUse {
            cpu: Duration::from_millis(49),
            major_faults: 0,
            minor_faults: 9,
            read_bytes: Some(0),
            written_bytes: None,
        };
        let has_worked = |used: &ProcessUse| has_worked(used, Duration::from_secs(5));
        assert!(!has_worked(&idle));
        assert!(has_worked(&ProcessUse { cpu: Duration::from_millis(50), ..idle }));
        assert!(has_worked(&ProcessUse { read_bytes: Some(4096), ..idle }));
        assert!(has_worked(&ProcessUse { written_bytes: Some(4096), ..idle }));
    }

    #[test]
    fn a_step_that_works_asks_for_more_time_until_it_ends() {
        let directory = tempfile::tempdir().expect("writable");
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("bound");
        socket.set_nonblocking(true).expect("set");
        let manager = ServiceManager::at(Some(path.into_os_string())).expect("an address").expect("a manager");
        let step = manager.ask_every(Duration::from_millis(5)).expect("a thread");
        let mut bytes = [0; 100];
        // The loop is the work.
        let length = loop {
            if let Ok(length) = socket.recv(&mut bytes) {
                break length;
            }
        };
        assert_eq!(&bytes[..length], b"EXTEND_TIMEOUT_USEC=30000000");
        drop(step);
    }

    #[test]
    fn sockets_for_another_process_are_left_alone() {
        let own = std::process::id().to_string();
        let count = |fds: Option<&str>, pid: &str| {
            inherited_count(|name| if name == "LISTEN_FDS" { fds.map(str::to_owned) } else { Some(pid.to_owned()) })
        };
        assert_eq!(count(None, &own), Ok(0));
        assert_eq!(count(Some("2"), "1"), Ok(0));
        assert_eq!(count(Some("2"), &own), Ok(2));
        for wrong in ["-1", "65", "two", ""] {
            let error = count(Some(wrong), &own).expect_err("refused");
            assert_eq!(error, format!("LISTEN_FDS={wrong} is not a whole number within 0 to 64"));
        }
    }
}
