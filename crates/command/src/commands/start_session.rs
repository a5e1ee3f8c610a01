//! `startSession`: returns the id of a new session.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::random_uuid;
use bunko_bson::{BinarySubtype, ValueRef, Writer};
use bunko_request::facts::{ANY_FIELDS, CommandFacts};
use bunko_session::Halt;
use bunko_session::sessions::{SESSION_TIMEOUT_MINUTES, SessionId};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "startSession", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let id = random_uuid(&*invocation.service.world.random);
    let user = invocation.service.session_user(invocation.connection);
    invocation.service.sessions.touch(SessionId { id, user }, invocation.now())?;
    reply
        .begin_document("id")
        .append("id", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &id })
        .end()
        .append("timeoutMinutes", SESSION_TIMEOUT_MINUTES);
    Ok(())
}
