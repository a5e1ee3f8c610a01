//! `features`: the machine part of the server's object ids, for old clients.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::CommandFacts;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "features", ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let [a, b, c, ..] = invocation.service.world.process;
    reply.begin_document("js").append("utf8", true).end().append("oidMachine", i32::from_le_bytes([a, b, c, 0]));
    Ok(())
}
