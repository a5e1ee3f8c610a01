//! The entry of a command in the table of commands: its facts, and the parts that need the server itself.
//!
//! **Invariant:** code outside a command's file never compares names of commands. It asks the entry.

use crate::authorization::Privileges;
use crate::invocation::Invocation;
use bunko_authority::audit::AuditEvent;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::CommandFacts;
use bunko_session::Halt;
use std::ops::Deref;

/// One entry of the table of commands.
pub struct Command {
    /// Facts about the command, which crates below this one use as well.
    pub facts: CommandFacts,
    /// The privileges that it needs, if the server checks privileges.
    pub privileges: Privileges,
    /// The event that it leaves in the audit log.
    pub(crate) audit: AuditEvent,
    /// Runs the command and writes the reply's fields except `ok`.
    pub run: fn(&mut Invocation<'_>, &mut Writer<'_>) -> Result<(), Halt>,
}

impl Command {
    /// Defaults for the fields that an entry leaves out. Name, privileges and `run` are always its own: the table does
    /// not compile with an entry that lacks a name or privileges.
    pub(crate) const PLAIN: Self = Self {
        facts: CommandFacts::PLAIN,
        privileges: Privileges::Undeclared,
        audit: AuditEvent::None,
        run: |_, _| Err(Failure::new(ErrorCode::INTERNAL_ERROR, "the command's entry has no function").into()),
    };
}

impl Deref for Command {
    type Target = CommandFacts;

    fn deref(&self) -> &CommandFacts {
        &self.facts
    }
}
