//! Writes events: their common fields, and the choice whether they are written.

use super::configuration::Choice;
use super::{AuditOptions, Configuration, Sink};
use crate::authority::Authority;
use crate::client::{Client, LocalEnd};
use bunko_access::Name;
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_request::Peer;
use parking_lot::RwLock;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

impl Authority {
    /// Starts the audit log. `kept` is the choice of events that clients stored before the server was started.
    /// # Errors
    /// If a filter is malformed.
    pub fn begin_audit(&mut self, options: AuditOptions, kept: Option<DocumentRef<'_>>) -> Result<()> {
        let AuditOptions { configuration, write, rotate } = options;
        let is_configurable = matches!(configuration, Configuration::AtRunTime);
        let choice = match configuration {
            Configuration::Fixed(Some(filter)) => Choice::of(filter)?,
            Configuration::Fixed(None) | Configuration::AtRunTime => Choice::default(),
        };
        let sink = Sink { is_configurable, choice: RwLock::new(choice), write, rotate };
        if let Some(kept) = kept.filter(|_| is_configurable) {
            self.audit.choose_events(&sink, kept)?;
        }
        self.audit.sink = Some(sink);
        Ok(())
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

    /// Applies a new value of the cluster parameter and writes an event about it, if the old or the new choice includes
    /// that event. The log therefore cannot be switched off unnoticed.
    /// # Errors
    /// If the filter is malformed.
    pub fn configure_audit(&self, client: &Client, value: DocumentRef<'_>) -> Result<()> {
        let Some(sink) = &self.audit.sink else { return Ok(()) };
        let previous = self.audit.configuration().unwrap_or_default();
        let before = self.audit.choose_events(sink, value)?;
        let config = self.audit.configuration().unwrap_or_default();
        let param = DocumentBuf::new().with("previous", &previous).with("config", &config);
        let event = self.event(Some(client), "auditConfigure", &param, 0);
        let is_chosen = before.includes(event.as_ref()) || sink.choice.read().includes(event.as_ref());
        if is_chosen {
            (sink.write)(event.as_ref());
        }
        Ok(())
    }

    /// Writes the event of the server's shutdown, unless it was written before. `client` asked for it.
    pub fn note_end(&self, client: Option<&Client>) {
        if self.audit.is_on() && !self.audit.has_noted_end.swap(true, Ordering::Relaxed) {
            self.note_event(client, "shutdown", &DocumentBuf::new(), 0);
        }
    }

    /// Writes an event, unless the filter excludes it. `result` is an error code, or 0 on success.
    pub fn note_event(&self, client: Option<&Client>, name: &str, param: &DocumentBuf, result: i32) {
        let Some(sink) = &self.audit.sink else { return };
        let event = self.event(client, name, param, result);
        let is_chosen = sink.choice.read().includes(event.as_ref());
        if is_chosen {
            (sink.write)(event.as_ref());
        }
    }

    fn event(&self, client: Option<&Client>, name: &str, param: &DocumentBuf, result: i32) -> DocumentBuf {
        let mut event =
            DocumentBuf::new().with("atype", name).with("ts", ValueRef::DateTime(self.clock.now_ms() as i64));
        // The server's own commands use a connection with id 0.
        if let Some(client) = client.filter(|client| client.id != 0) {
            let bytes = client.uuid(&*self.random);
            event.append("uuid", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &bytes });
            event.append("local", &local_end(client.local.as_ref()));
            event.append("remote", &remote_end(client.peer));
        } else {
            let itself = DocumentBuf::new().with("isSystemUser", true);
            event.append("local", &itself).append("remote", &itself);
        }
        let user = client.and_then(Client::user);
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

/// A user or a role, as events name it.
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
