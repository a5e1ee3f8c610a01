//! `getCmdLineOpts`: the options that the process was started with.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "getCmdLineOpts",
    aliases: &[],
    fields: &[],
    databases: Databases::Admin,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::GetCmdLineOpts),
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let facts = &invocation.service.facts;
    reply.begin_array("argv");
    for (index, argument) in facts.arguments.iter().enumerate() {
        reply.push(index, argument);
    }
    reply.end().append("parsed", &facts.parsed_options);
    Ok(())
}
