//! `ping`: returns an empty reply.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "ping",
    aliases: &[],
    fields: &[],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::BeforeLogin,
    run,
};

fn run(_invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    Ok(())
}
