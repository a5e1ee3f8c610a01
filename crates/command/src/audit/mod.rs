//! The audit log: changes of users, roles, collections and indexes, logins, and refused commands, each with its user.
//!
//! One document for each event, in MongoDB's form. Without an audit log, a command pays only for one branch.
//!
//! **Invariant:** no event contains a password or a login message.
//! Source: MongoDB manual 8.2, "System Event Audit Messages".

mod configuration;
mod events;

pub use configuration::Configuration;
pub(crate) use events::{
    Account, AuditEvent, Event, PasswordNote, note_command, note_created, note_login, note_logout, note_merged,
    note_refusal, note_success,
};

use crate::connection::{ClientConnection, LocalEnd};
use crate::service::Service;
use bunko_access::Name;
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_session::Peer;
use configuration::Choice;
use parking_lot::RwLock;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes an event.
type WriteEvent = Box<dyn Fn(DocumentRef<'_>) + Send + Sync>;
/// Continues the log in a new file, or returns why it could not.
type Rotate = Box<dyn Fn() -> std::result::Result<(), String> + Send + Sync>;

/// The destination of events, and the choice of events.
pub struct AuditOptions {
    /// The choice of events.
    pub configuration: Configuration,
    /// Writes an event.
    pub write: WriteEvent,
    /// Continues the log in a new file.
    pub rotate: Rotate,
}

struct Sink {
    /// Whether clients may change the choice of events.
    is_configurable: bool,
    /// The choice of events.
    choice: RwLock<Choice>,
    write: WriteEvent,
    rotate: Rotate,
}

/// The audit log, if there is one.
#[derive(Default)]
pub(crate) struct Audit {
    sink: Option<Sink>,
    notes_successes: AtomicBool,
    /// Whether the shutdown event was written. It is written once, with the client that asked for it, if there is one.
    has_noted_end: AtomicBool,
}

impl Audit {
    pub fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Whether successful privilege checks are events (`auditAuthorizationSuccess`).
    pub fn notes_successes(&self) -> bool {
        self.is_on() && self.notes_successes.load(Ordering::Relaxed)
    }

    /// The parameter `auditAuthorizationSuccess`.
    pub fn chooses_successes(&self) -> bool {
        self.notes_successes.load(Ordering::Relaxed)
    }

    /// Sets the parameter `auditAuthorizationSuccess`.
    /// # Errors
    /// `BadValue` if clients choose the events with the cluster parameter.
    pub fn choose_successes(&self, are_events: bool) -> Result<()> {
        self.refuse_if_configurable()?;
        self.notes_successes.store(are_events, Ordering::Relaxed);
        Ok(())
    }

    /// Continues the log in a new file; `None` without an audit log.
    pub fn rotate(&self) -> Option<std::result::Result<(), String>> {
        self.sink.as_ref().map(|sink| (sink.rotate)())
    }
}

impl Service {
    /// Starts the audit log.
    /// # Errors
    /// If the filter is malformed.
    pub fn begin_audit(&mut self, options: AuditOptions) -> Result<()> {
        let AuditOptions { configuration, write, rotate } = options;
        let is_configurable = matches!(configuration, Configuration::AtRunTime);
        let choice = match configuration {
            Configuration::Fixed(Some(filter)) => Choice::of(filter)?,
            Configuration::Fixed(None) | Configuration::AtRunTime => Choice::default(),
        };
        self.audit.sink = Some(Sink { is_configurable, choice: RwLock::new(choice), write, rotate });
        self.load_audit_configuration()
    }

    /// Whether there is an audit log.
    pub fn is_audited(&self) -> bool {
        self.audit.is_on()
    }

    /// Writes the event of the server's start, with the options in force.
    pub fn audit_start(&self, options: DocumentRef<'_>) {
        self.note_event(None, "startup", &DocumentBuf::new().with("options", ValueRef::Document(options)), 0);
    }

    /// Writes the event of the server's shutdown, unless it was written before.
    pub fn audit_end(&self) {
        self.note_end(None);
    }

    /// Continues the audit log in a new file, if there is a log, and writes an event about it there.
    /// # Errors
    /// A sentence with the reason.
    pub fn rotate_audit(&self) -> std::result::Result<(), String> {
        let Some(rotated) = self.audit.rotate() else { return Ok(()) };
        let param = DocumentBuf::new().with("pid", i64::from(std::process::id()));
        self.note_event(None, "rotateLog", &param, i32::from(rotated.is_err()));
        rotated
    }

    pub(crate) fn note_end(&self, connection: Option<&ClientConnection>) {
        if self.audit.is_on() && !self.audit.has_noted_end.swap(true, Ordering::Relaxed) {
            self.note_event(connection, "shutdown", &DocumentBuf::new(), 0);
        }
    }

    /// Writes an event, unless the filter excludes it. `result` is an error code, or 0 on success.
    pub(crate) fn note_event(
        &self,
        connection: Option<&ClientConnection>,
        name: &str,
        param: &DocumentBuf,
        result: i32,
    ) {
        let Some(sink) = &self.audit.sink else { return };
        let event = self.event(connection, name, param, result);
        let is_chosen = sink.choice.read().includes(event.as_ref());
        if is_chosen {
            (sink.write)(event.as_ref());
        }
    }

    fn event(
        &self,
        connection: Option<&ClientConnection>,
        name: &str,
        param: &DocumentBuf,
        result: i32,
    ) -> DocumentBuf {
        let mut event = DocumentBuf::new().with("atype", name).with("ts", ValueRef::DateTime(self.world.now_ms()));
        // The server's own commands use a connection with id 0.
        if let Some(connection) = connection.filter(|connection| connection.id != 0) {
            let bytes = connection.uuid(&*self.world.random);
            event.append("uuid", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &bytes });
            event.append("local", &local_end(connection.local.as_ref()));
            event.append("remote", &remote_end(connection.peer));
        } else {
            let itself = DocumentBuf::new().with("isSystemUser", true);
            event.append("local", &itself).append("remote", &itself);
        }
        let user = connection.and_then(|connection| connection.user.as_ref());
        let mut users = ArrayBuf::new();
        if let Some(user) = user {
            users.push(&named("user", &user.name));
        }
        let mut roles = ArrayBuf::new();
        for role in user.iter().flat_map(|user| &user.roles) {
            roles.push(&named("role", role));
        }
        event.with("users", &users).with("roles", &roles).with("param", param).with("result", result)
    }
}

pub(super) fn named(what: &str, name: &Name) -> DocumentBuf {
    DocumentBuf::new().with(what, name.name.as_str()).with("db", name.database.as_str())
}

fn remote_end(peer: Peer) -> DocumentBuf {
    match peer {
        Peer::Tcp(address) => of_address(address),
        Peer::Unix => unnamed(),
    }
}

fn local_end(local: Option<&LocalEnd>) -> DocumentBuf {
    match local {
        Some(LocalEnd::Tcp(address)) => of_address(*address),
        Some(LocalEnd::Unix(path)) => DocumentBuf::new().with("unix", path.as_str()),
        None => unnamed(),
    }
}

/// An end without a name, such as the client's end of a Unix domain socket.
fn unnamed() -> DocumentBuf {
    DocumentBuf::new().with("unix", "anonymous")
}

fn of_address(address: SocketAddr) -> DocumentBuf {
    DocumentBuf::new().with("ip", address.ip().to_string().as_str()).with("port", i32::from(address.port()))
}
