//! Where the events of the audit log go: a file, standard output, or the machine's logging daemon.

use crate::configuration::{AuditDestination, AuditFormat, AuditSettings};
use crate::log_file::LogOutput;
use crate::serve::now_ms;
use bunko_bson::{DocumentRef, ValueRef, extended_json};
use bunko_command::{AuditConfiguration, AuditOptions, Service};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where the daemon listens.
/// Source: syslog(3).
const SYSLOG_SOCKET: &str = "/dev/log";
/// Facility `user`, severity `info`.
/// Source: RFC 3164, section 4.1.1.
const SYSLOG_PRIORITY: u8 = 14;

/// Has a service note events.
/// # Errors
/// A sentence that names the file or the socket, or what is wrong with the filter.
pub fn begin(settings: &AuditSettings, service: &mut Service) -> Result<(), String> {
    let format = settings.format;
    let (name, sink) = match &settings.destination {
        AuditDestination::File(file) => {
            let output = LogOutput::open(Some(file)).map_err(|error| error.replace("systemLog.path", "auditLog.path"));
            (file.path.display().to_string(), Sink::File(output?))
        }
        AuditDestination::Console => ("standard output".to_owned(), Sink::Console),
        AuditDestination::Syslog => {
            let syslog = Syslog::connect(Path::new(SYSLOG_SOCKET));
            let syslog = syslog.map_err(|error| format!("auditLog.destination: syslog: {SYSLOG_SOCKET}: {error}"))?;
            (SYSLOG_SOCKET.to_owned(), Sink::Syslog(syslog))
        }
    };
    let (sink, of_rotation) = (Arc::new(sink), name.clone());
    let rotated = Arc::clone(&sink);
    let options = AuditOptions {
        configuration: if settings.is_configurable {
            AuditConfiguration::AtRunTime
        } else {
            AuditConfiguration::Fixed(settings.filter.clone())
        },
        write: Box::new(move |event| {
            // Nobody finds out otherwise that events are missing.
            if let Err(error) = sink.write(event, format) {
                tracing::error!(target: "CONTROL", id = 117, ctx = "audit", path = name, error = %error, "An event could not be written to the audit log");
            }
        }),
        rotate: Box::new(move || rotated.rotate().map_err(|error| format!("{of_rotation}: {error}"))),
    };
    service.begin_audit(options).map_err(|failure| format!("auditLog.filter: {failure}"))
}

/// What takes events.
enum Sink {
    File(LogOutput),
    Console,
    Syslog(Syslog),
}

impl Sink {
    fn write(&self, event: DocumentRef<'_>, format: AuditFormat) -> io::Result<()> {
        let line = || extended_json::to_relaxed(ValueRef::Document(event));
        match (self, format) {
            (Self::File(file), AuditFormat::Bson) => file.try_write(event.as_bytes()),
            (Self::File(file), AuditFormat::Json) => file.try_write_line(&line()),
            (Self::Console, _) => io::stdout().write_all(format!("{}\n", line()).as_bytes()),
            (Self::Syslog(syslog), _) => syslog.send(&line()),
        }
    }

    /// Goes on in a new file. Who reads the others rotates what they make of it.
    fn rotate(&self) -> Result<(), String> {
        match self {
            Self::File(file) => file.rotate(now_ms() as i64),
            Self::Console | Self::Syslog(_) => Ok(()),
        }
    }
}

/// The connection to the logging daemon.
struct Syslog {
    path: PathBuf,
    socket: Mutex<UnixDatagram>,
}

impl Syslog {
    fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), socket: Mutex::new(open(path)?) })
    }

    /// Sends a message, over a new connection where the daemon has been started anew.
    fn send(&self, line: &str) -> io::Result<()> {
        let message = format!("<{SYSLOG_PRIORITY}>bunko[{}]: {line}", std::process::id());
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if socket.send(message.as_bytes()).is_ok() {
            return Ok(());
        }
        *socket = open(&self.path)?;
        socket.send(message.as_bytes()).map(drop)
    }
}

fn open(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    // A daemon that reads no more must not hold commands up: an event that it does not take is named in the log.
    socket.set_nonblocking(true)?;
    socket.connect(path)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(daemon: &UnixDatagram) -> String {
        let mut message = [0; 1000];
        let length = daemon.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..length]).into_owned()
    }

    #[test]
    fn events_reach_the_daemon_also_after_it_was_started_anew() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("log");
        assert!(Syslog::connect(&path).is_err(), "nobody listens");
        let daemon = UnixDatagram::bind(&path).expect("bound");
        let syslog = Syslog::connect(&path).expect("connected");
        syslog.send("{\"atype\":\"startup\"}").expect("sent");
        let expected = format!("<14>bunko[{}]: {{\"atype\":\"startup\"}}", std::process::id());
        assert_eq!(received(&daemon), expected);
        drop(daemon);
        std::fs::remove_file(&path).expect("removed");
        assert!(syslog.send("lost").is_err());
        let daemon = UnixDatagram::bind(&path).expect("bound");
        syslog.send("again").expect("sent");
        assert!(received(&daemon).ends_with("]: again"));
        // A daemon that does not read holds nobody up.
        let outcome = (0..10_000).find_map(|_| syslog.send("more").err());
        assert!(outcome.is_some());
    }
}
