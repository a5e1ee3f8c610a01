//! `listCommands`: the table of commands.

use super::COMMANDS;
use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command =
    Command { name: "listCommands", aliases: &[], fields: &[], databases: Databases::Any, run };

fn run(_: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let mut commands: Vec<&Command> = COMMANDS.iter().collect();
    commands.sort_by_key(|command| command.name);
    reply.begin_document("commands");
    for command in commands {
        reply
            .begin_document(command.name)
            .append("help", "no help defined")
            .append("requiresAuth", false)
            .append("adminOnly", command.databases == Databases::Admin)
            .end();
    }
    reply.end();
    Ok(())
}
