//! `whatsmyuri`: the client's address as the server sees it.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{ANY_FIELDS, CommandFacts};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "whatsmyuri", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    reply.append("you", &invocation.connection.peer.to_string());
    Ok(())
}
