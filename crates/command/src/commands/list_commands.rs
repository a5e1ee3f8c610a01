//! `listCommands`: lists the table of commands.

use super::COMMANDS;
use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::generic_options::writes;
use crate::invocation::Invocation;
use crate::stable_api;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "listCommands",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::Login,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let mut commands: Vec<&Command> = COMMANDS.iter().filter(|command| is_there(invocation, command)).collect();
    commands.sort_by_key(|command| command.name);
    reply.begin_document("commands");
    for command in commands {
        reply
            .begin_document(command.name)
            .append("help", "no help defined")
            .append("requiresAuth", !matches!(command.privileges, Privileges::BeforeLogin))
            .append("secondaryOk", !writes(command.name))
            .append("adminOnly", command.databases.is_admin_only())
            .begin_array("apiVersions");
        if stable_api::has(command.name) {
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
