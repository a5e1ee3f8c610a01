//! `shutdown`: stops the server.

use crate::audit::AuditEvent;
use crate::authorization::Privileges;
use crate::command_entry::{Command, Databases, Queueing};
use crate::dispatch::Halt;
use crate::field_kinds::{Kind, field};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "shutdown",
    fields: &[field("force", Kind::Boolean), field("timeoutSecs", Kind::Own)],
    databases: Databases::Admin,
    privileges: Privileges::OnCluster(Action::Shutdown),
    queueing: Queueing::AtOnce,
    audit: AuditEvent::EndOfServer,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    // Both options concern secondaries that have not caught up. Bunko has none, so only their types are checked.
    invocation.strict_boolean("force", false)?;
    invocation.size("timeoutSecs")?;
    (invocation.service.process.shut_down)();
    Ok(())
}
