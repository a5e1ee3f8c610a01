//! `getnonce`: a challenge for an authentication mechanism that was removed. mgo.v2 asks for one on each socket and
//! needs a reply.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Compression};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "getnonce", compression: Compression::Never, ..CommandFacts::PLAIN },
    privileges: Privileges::BeforeLogin,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    reply.append("nonce", &format!("{:016x}", (invocation.service.world.random)()));
    Ok(())
}
