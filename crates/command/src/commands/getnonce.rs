//! `getnonce`: a challenge for an authentication mechanism that was removed. mgo.v2 asks for one on each socket and
//! needs a reply.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "getnonce",
    aliases: &[],
    fields: &[],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::BeforeLogin,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    reply.append("nonce", &format!("{:016x}", (invocation.service.world.random)()));
    Ok(())
}
