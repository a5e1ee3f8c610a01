//! `replSetInitiate`: the set exists since the server started, but a client can still set the name of its member.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetInitiate",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ReplSetConfigure),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let Some(set) = &service.replica_set else {
        let message = "This node was not started with replication enabled.";
        return Err(Failure::new(ErrorCode::NO_REPLICATION_ENABLED, message).into());
    };
    // Host names may have to be resolved.
    invocation.operation().leave_shared_thread()?;
    // Without a document the command asks for the default configuration.
    let asked = invocation.argument().as_document().unwrap_or(DocumentRef::EMPTY);
    Ok(service.initiate(set, asked)?)
}
