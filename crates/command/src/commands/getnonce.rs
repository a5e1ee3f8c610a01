//! `getnonce`: a challenge for an authentication mechanism that was removed. mgo.v2 asks for one on each socket and
//! needs a reply.

use crate::authorization::Privileges;
use crate::command_entry::{Command, Compression};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "getnonce",
    privileges: Privileges::BeforeLogin,
    compression: Compression::Never,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    reply.append("nonce", &format!("{:016x}", (invocation.service.world.random)()));
    Ok(())
}
