//! The audit log: changes of users, roles, collections and indexes, logins, and refused commands, each with its user.
//!
//! One document for each event, in MongoDB's form. Without an audit log, a command pays only for one branch.
//!
//! **Invariant:** no event contains a password or a login message.
//! Source: MongoDB manual 8.2, "System Event Audit Messages".

mod configuration;
mod events;
mod record;

pub use configuration::Configuration;
pub use events::{
    Account, AuditEvent, Event, PasswordNote, note_created, note_login, note_logout, note_merged, note_refusal,
    note_success,
};

use bunko_bson::DocumentRef;
use bunko_errors::Result;
use configuration::Choice;
use parking_lot::RwLock;
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
pub struct Audit {
    sink: Option<Sink>,
    notes_successes: AtomicBool,
    /// Whether the shutdown event was written. It is written once, and names the client that asked for the shutdown, if
    /// any.
    has_noted_end: AtomicBool,
}

impl Audit {
    /// Whether there is an audit log.
    pub fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Whether successful privilege checks are events (`auditAuthorizationSuccess`).
    pub fn notes_successes(&self) -> bool {
        self.is_on() && self.notes_successes.load(Ordering::Relaxed)
    }

    /// Continues the log in a new file; `None` without an audit log.
    pub fn rotate(&self) -> Option<std::result::Result<(), String>> {
        self.sink.as_ref().map(|sink| (sink.rotate)())
    }

    /// Whether successful privilege checks were made events, even if there is no log.
    pub fn chooses_successes(&self) -> bool {
        self.notes_successes.load(Ordering::Relaxed)
    }

    /// Makes successful privilege checks events, or not.
    /// # Errors
    /// `BadValue` if clients choose the events with the cluster parameter.
    pub fn choose_successes(&self, are_events: bool) -> Result<()> {
        self.refuse_if_configurable()?;
        self.notes_successes.store(are_events, Ordering::Relaxed);
        Ok(())
    }
}
