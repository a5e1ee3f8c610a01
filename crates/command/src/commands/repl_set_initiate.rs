//! `replSetInitiate`: the start of the server has begun the set; a client may still say how its member is called.

use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, Writer};
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
    let service = invocation.service;
    let Some(set) = &service.replica_set else {
        let message = "This node was not started with replication enabled.";
        return Err(Failure::new(ErrorCode::NO_REPLICATION_ENABLED, message).into());
    };
    // Names of hosts may have to be looked up.
    invocation.operation().leave_shared_thread()?;
    // Without a document it asks for the configuration that there would be anyway.
    let asked = invocation.argument().as_document().unwrap_or(DocumentRef::EMPTY);
    Ok(service.initiate(set, asked)?)
}
