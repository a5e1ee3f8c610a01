//! `whatsmyuri`: the client's address as the server sees it.

use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "whatsmyuri",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::Login,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    reply.append("you", &invocation.connection.peer.to_string());
    Ok(())
}
