//! `features`: the machine part of the server's object ids, for old clients.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "features",
    aliases: &[],
    fields: &[],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::Login,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let [a, b, c, ..] = invocation.service.world.process;
    reply.begin_document("js").append("utf8", true).end().append("oidMachine", i32::from_le_bytes([a, b, c, 0]));
    Ok(())
}
