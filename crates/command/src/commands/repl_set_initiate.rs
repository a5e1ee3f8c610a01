//! `replSetInitiate`: the set has been initiated by the start of the server.

use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "replSetInitiate",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::ReplSetConfigure),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    if invocation.service.replica_set.is_some() {
        return Err(Failure::new(ErrorCode::ALREADY_INITIALIZED, "already initialized").into());
    }
    let message = "This node was not started with replication enabled.";
    Err(Failure::new(ErrorCode::NO_REPLICATION_ENABLED, message).into())
}
