//! `invalidateUserCache`: makes all connections read their users' rights again.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Databases};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "invalidateUserCache", databases: Databases::Admin, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::InvalidateUserCache),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    invocation.service.authority.access.note_change();
    Ok(())
}
