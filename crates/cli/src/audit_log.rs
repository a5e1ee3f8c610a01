//! Destinations of the audit log's events: a file, standard output, or the machine's logging daemon.

use crate::configuration::{AuditDestination, AuditFormat, AuditSettings};
use crate::console::Console;
use crate::log_file::LogOutput;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, extended_json};
use bunko_command::{AuditConfiguration, AuditOptions, Service};
use bunko_host::Clock;
use rustix::io::Errno;
use std::io::{self, Stdout};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Socket of the logging daemon.
/// Source: syslog(3).
const SYSLOG_SOCKET: &str = "/dev/log";
/// Facility `user`, severity `info`.
/// Source: RFC 3164, section 4.1.1.
const SYSLOG_PRIORITY: u8 = 14;

/// Largest field of `param`, in bytes, that is kept in an event that is too long for the daemon.
const FIELD_BYTES_MAX: usize = 1024;

/// Makes a service write audit events.
/// # Errors
/// A sentence that names the file or the socket, or what is wrong with the filter.
pub fn begin(settings: &AuditSettings, service: &mut Service) -> Result<(), String> {
    let format = settings.format;
    let (name, sink) = match &settings.destination {
        AuditDestination::File(file) => {
            let output = LogOutput::open(Some(file)).map_err(|error| error.replace("systemLog.path", "auditLog.path"));
            (file.path.display().to_string(), Sink::File(output?))
        }
        AuditDestination::Console => ("standard output".to_owned(), Sink::Console(Console::new(io::stdout()))),
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
            // Only this log line tells that an event is missing, and which one.
            if let Err(error) = sink.write(event, format) {
                let field = |name| event.get(name).map(extended_json::to_relaxed);
                let atype = event.get("atype").and_then(ValueRef::as_str);
                tracing::error!(target: "CONTROL", id = 117, ctx = "audit", path = name, error = %error, atype, users = field("users"), remote = field("remote"), result = field("result"), "An event could not be written to the audit log");
            }
        }),
        rotate: Box::new(move || rotated.rotate().map_err(|error| format!("{of_rotation}: {error}"))),
    };
    service.begin_audit(options).map_err(|failure| format!("auditLog.filter: {failure}"))
}

/// Destination of events.
enum Sink {
    File(LogOutput),
    Console(Console<Stdout>),
    Syslog(Syslog),
}

impl Sink {
    fn write(&self, event: DocumentRef<'_>, format: AuditFormat) -> io::Result<()> {
        let line = || extended_json::to_relaxed(ValueRef::Document(event));
        match (self, format) {
            (Self::File(file), AuditFormat::Bson) => file.try_write(event.as_bytes()),
            (Self::File(file), AuditFormat::Json) => file.try_write_line(&line()),
            (Self::Console(console), _) => console.write(format!("{}\n", line()).as_bytes()),
            (Self::Syslog(syslog), _) => match syslog.send(&line()) {
                Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                    syslog.send(&extended_json::to_relaxed(ValueRef::Document(shortened(event).as_ref())))
                }
                sent => sent,
            },
        }
    }

    /// Continues in a new file. Standard output and the daemon's files are rotated by their readers.
    fn rotate(&self) -> Result<(), String> {
        match self {
            Self::File(file) => file.rotate(Clock::machine().now_ms() as i64),
            Self::Console(_) | Self::Syslog(_) => Ok(()),
        }
    }
}

/// A shorter form of an event that is too long for a datagram: large fields of `param` are left out. Otherwise a client
/// could pad a command so that it leaves no trace.
fn shortened(event: DocumentRef<'_>) -> DocumentBuf {
    let mut short = DocumentBuf::new();
    for field in event {
        match field.value {
            ValueRef::Document(param) if field.name == "param" => {
                let mut kept = DocumentBuf::new();
                for field in param {
                    let bytes = DocumentBuf::new().with(field.name, field.value).as_ref().as_bytes().len();
                    if bytes <= FIELD_BYTES_MAX {
                        kept.append(field.name, field.value);
                    } else {
                        kept.append(field.name, format!("<{bytes} bytes left out>").as_str());
                    }
                }
                short.append("param", &kept);
            }
            value => drop(short.append(field.name, value)),
        }
    }
    short
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

    /// Sends a message, over a new connection if the daemon was restarted.
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
    // A daemon that stops reading must not block commands: an event that it does not accept is reported in the log.
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
    fn a_padded_command_leaves_a_trace() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("log");
        let daemon = UnixDatagram::bind(&path).expect("bound");
        let sink = Sink::Syslog(Syslog::connect(&path).expect("connected"));
        let padding = "x".repeat(1 << 20);
        let param = DocumentBuf::new().with("command", "find").with("ns", "test.a").with("args", padding.as_str());
        let event = DocumentBuf::new().with("atype", "authCheck").with("param", &param).with("result", 13);
        sink.write(event.as_ref(), AuditFormat::Json).expect("sent");
        let expected = r#"{"atype":"authCheck","param":{"command":"find","ns":"test.a","args":"<1048592 bytes left out>"},"result":13}"#;
        assert!(received(&daemon).ends_with(expected));
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
        // A daemon that does not read blocks no command.
        let outcome = (0..10_000).find_map(|_| syslog.send("more").err());
        assert!(outcome.is_some());
    }
}
