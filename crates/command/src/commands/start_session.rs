//! `startSession`: returns the id of a new session.

use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use crate::sessions::id::random_uuid;
use crate::sessions::{SESSION_TIMEOUT_MINUTES, SessionId};
use bunko_bson::{BinarySubtype, ValueRef, Writer};
use std::time::Instant;

pub(super) const COMMAND: Command = Command {
    name: "startSession",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::Login,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let id = random_uuid(&*invocation.service.world.random);
    let user = invocation.service.session_user(invocation.connection);
    invocation.service.sessions.touch(SessionId { id, user }, Instant::now())?;
    reply
        .begin_document("id")
        .append("id", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &id })
        .end()
        .append("timeoutMinutes", SESSION_TIMEOUT_MINUTES);
    Ok(())
}
