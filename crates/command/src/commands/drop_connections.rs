//! `dropConnections`: ends the connections that the server has made to others. This one makes none.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::field_kinds::{Kind, field};
use crate::invocation::Invocation;
use crate::write_statement::required_value;
use bunko_access::Action;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "dropConnections",
    aliases: &[],
    fields: &[field("hostAndPort", Kind::Texts)],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::DropConnections),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    required_value(invocation, "hostAndPort")?;
    Ok(())
}
