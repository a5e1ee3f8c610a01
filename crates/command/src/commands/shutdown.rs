//! `shutdown`: stops the server.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_authority::audit::AuditEvent;
use bunko_bson::Writer;
use bunko_errors::Failure;
use bunko_request::facts::{CommandFacts, Databases, Queueing};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "shutdown",
        fields: &[field("force", Kind::Boolean), field("timeoutSecs", Kind::Own)],
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::Shutdown),
    audit: AuditEvent::EndOfServer,
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    parse(invocation)?;
    (invocation.service.process.shut_down)();
    Ok(())
}

/// Checks the options, which concern secondaries that have not caught up. They change nothing: a primary hands over if
/// a secondary has caught up, and stops in any case, as at a SIGTERM.
fn parse(fields: &Fields<'_>) -> Result<(), Failure> {
    fields.size("timeoutSecs").map(drop)
}
