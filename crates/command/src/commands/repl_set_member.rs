//! `replSetMember`: a message of another member of the set. The documents of `parts` have bytes of the log.
//!
//! Bytes of a record that is longer than a message come in several: `piece` says where they belong, and the last ones
//! come with the message. `join` invites an empty server into a set, and `image` asks for the data of an initial sync.
//! Without all of these it asks how this member is.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_members::{COMMAND as NAME, FROM_HOST, IMAGE, PARTS, Received, TO_HOST};
use bunko_request::facts::{CommandFacts, Databases, Queueing};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: NAME,
        fields: &[
            field("set", Kind::Own),
            field("setId", Kind::Own),
            field("from", Kind::Own),
            field("to", Kind::Own),
            field(FROM_HOST, Kind::Own),
            field(TO_HOST, Kind::Own),
            field("stamp", Kind::Object),
            field("message", Kind::Object),
            field("join", Kind::Object),
            field(IMAGE, Kind::Object),
            field("piece", Kind::Object),
            field(PARTS, Kind::Own),
        ],
        sequences: &[PARTS],
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::Internal),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let set = service.replica_set.as_ref().ok_or_else(no_set)?;
    if !service.authority.access.is_enforced() {
        let ip = invocation.connection.peer.ip();
        if ip.is_some_and(|ip| !ip.to_canonical().is_loopback()) {
            let message = "a member of a set on another machine must log in: start all members with --keyFile FILE, the same \
                           file, or with --clusterAuthMode x509";
            return Err(Failure::new(ErrorCode::UNAUTHORIZED, message).into());
        }
    }
    let body = invocation.request.body;
    let name = body.get("set").and_then(ValueRef::as_str).unwrap_or_default();
    if name != set.name() {
        let message = format!("a message for the set '{name}', and this server is in '{}'", set.name());
        return Err(Failure::new(ErrorCode::INVALID_REPLICA_SET_CONFIG, message).into());
    }
    let Some(members) = service.members() else {
        invocation.operation().leave_shared_thread()?;
        return Ok(service.join(set, body)?);
    };
    if let Some(invitation) = body.get("join").and_then(ValueRef::as_document) {
        // Accepting the invitation writes a file.
        invocation.operation().leave_shared_thread()?;
        return Ok(members.rejoin(invitation)?);
    }
    if body.get(IMAGE).is_some() {
        // The image is read from files.
        invocation.operation().leave_shared_thread()?;
        reply.append(IMAGE, &members.image(body)?);
        return Ok(());
    }
    if invocation.connection.inbound.is_none() && body.get("message").is_some() {
        invocation.connection.inbound = service.inbound(body);
    }
    let sequence = invocation.request.message.and_then(|message| message.sequence(PARTS));
    let parts = sequence.into_iter().flat_map(|sequence| sequence.documents.clone());
    let status = members.receive(&Received { body, parts: parts.collect() })?;
    reply.append("status", &status);
    Ok(())
}
