//! `replSetInitiate`: the set exists since the server started, but a client can still set the name of its member, or
//! begin a set of several members with this one's data.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::{DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_replica_set::{COLLECTION, DATABASE};
use bunko_request::facts::{ANY_FIELDS, Changes, CommandFacts, Databases};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetInitiate",
        fields: ANY_FIELDS,
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
    let Some(set) = &service.replica_set else {
        let message = "This node was not started with replication enabled.";
        return Err(Failure::new(ErrorCode::NO_REPLICATION_ENABLED, message).into());
    };
    // Host names may have to be resolved.
    invocation.operation().leave_shared_thread()?;
    // Without a document the command asks for the default configuration.
    let asked = invocation.argument().as_document().unwrap_or(DocumentRef::EMPTY);
    let members = asked.get("members").and_then(ValueRef::as_array);
    if members.is_some_and(|members| members.iter().count() > 1) {
        let is_own = |host: &str, port: &str| service.is_this_server(host, port);
        return Ok(set.initiate_several(asked, &is_own, |initiation| service.initiate_several(initiation))?);
    }
    set.initiate(asked, &*service.process.is_this_machine, |configuration| {
        stored_settings::keep(invocation, DATABASE, COLLECTION, configuration)
    })
}
