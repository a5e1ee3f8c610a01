//! `getDefaultRWConcern` and `setDefaultRWConcern`: defaults of a replica set or a cluster, which a single server has
//! not.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const GET: Command = Command {
    name: "getDefaultRWConcern",
    aliases: &[],
    fields: &["inMemory"],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::GetDefaultRwConcern),
    run,
};

pub(super) const SET: Command = Command {
    name: "setDefaultRWConcern",
    aliases: &[],
    fields: &["defaultReadConcern", "defaultWriteConcern"],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::SetDefaultRwConcern),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let message = format!("'{}' is not supported on standalone nodes.", invocation.command.name);
    Err(Failure::new(ErrorCode(51300), message).into())
}
