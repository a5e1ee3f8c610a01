//! `replSetReconfig`: a set of one member has nothing that could be changed yet but by its next start.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::field_kinds::{Kind, field};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::Failure;

pub(super) const COMMAND: Command = Command {
    name: "replSetReconfig",
    aliases: &[],
    fields: &[field("force", Kind::Own), field("newlyAdded", Kind::Own)],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::ReplSetConfigure),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    let argument = invocation.argument();
    if argument.as_document().is_none() {
        return Err(Failure::bad_value("no configuration specified").into());
    }
    Err(Failure::not_supported_yet("a change of a replica set's configuration").into())
}
