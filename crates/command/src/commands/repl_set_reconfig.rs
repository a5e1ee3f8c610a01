//! `replSetReconfig`: changes the name of the only member, and settings of the set.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::Failure;
use bunko_replica_set::{COLLECTION, DATABASE, Force};
use bunko_request::facts::{Changes, CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetReconfig",
        fields: &[field("force", Kind::Own), field("newlyAdded", Kind::Own)],
        changes: Changes::Other,
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
    set.reconfigure(asked, force, &*service.process.is_this_machine, |configuration| {
        stored_settings::keep(invocation, DATABASE, COLLECTION, configuration)
    })
}

fn parse(fields: &Fields<'_>) -> Result<Force, Failure> {
    Ok(if fields.boolean("force", false)? { Force::Yes } else { Force::No })
}
