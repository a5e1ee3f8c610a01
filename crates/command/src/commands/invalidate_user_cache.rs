//! `invalidateUserCache`: makes all connections read their users' rights again.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "invalidateUserCache",
    aliases: &[],
    fields: &[],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::InvalidateUserCache),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    invocation.service.access.note_change();
    Ok(())
}
