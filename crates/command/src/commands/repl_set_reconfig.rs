//! `replSetReconfig`: changes the name of the only member, and settings of the set.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::replica_set::Force;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::Failure;
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetReconfig",
        fields: &[field("force", Kind::Own), field("newlyAdded", Kind::Own)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ReplSetConfigure),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let set = service.replica_set.as_ref().ok_or_else(no_set)?;
    let force = parse(invocation)?;
    let asked = invocation.argument().as_document();
    let asked = asked.ok_or_else(|| Failure::bad_value("no configuration specified"))?;
    // Host names may have to be resolved.
    invocation.operation().leave_shared_thread()?;
    Ok(service.reconfigure(set, asked, force)?)
}

fn parse(fields: &Fields<'_>) -> Result<Force, Failure> {
    Ok(if fields.boolean("force", false)? { Force::Yes } else { Force::No })
}
