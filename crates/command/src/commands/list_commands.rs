//! `listCommands`: lists the table of commands.

use super::COMMANDS;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Stability, WriteConcernUse};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "listCommands", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

/// Whether only a primary runs the command.
fn is_for_primaries(command: &Command) -> bool {
    command.changes.is_certain() && command.write_concern == WriteConcernUse::Taken
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let mut commands: Vec<&Command> = COMMANDS.iter().filter(|command| is_there(invocation, command)).collect();
    commands.sort_by_key(|command| command.name);
    reply.begin_document("commands");
    for command in commands {
        reply
            .begin_document(command.name)
            .append("help", "no help defined")
            .append("requiresAuth", !matches!(command.privileges, Privileges::BeforeLogin))
            .append("secondaryOk", !is_for_primaries(command))
            .append("adminOnly", command.databases.is_admin_only())
            .begin_array("apiVersions");
        if command.stable_api != Stability::Outside {
            reply.push(0, "1");
        }
        reply.end().begin_array("deprecatedApiVersions").end().end();
    }
    reply.end();
    Ok(())
}

fn is_there(invocation: &Invocation<'_>, command: &Command) -> bool {
    !command.databases.is_of_tests() || invocation.service.fail_points.are_allowed()
}
