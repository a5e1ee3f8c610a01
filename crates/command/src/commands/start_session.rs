//! `startSession`: a new session's id.

use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use crate::sessions::SESSION_TIMEOUT_MINUTES;
use crate::sessions::id::random_uuid;
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
    let session = invocation.service.sessions.touch(id, Instant::now())?;
    if let Some(user) = invocation.connection.user.as_ref().filter(|_| invocation.service.access.is_enforced()) {
        session.belongs_to(&user.name);
    }
    reply
        .begin_document("id")
        .append("id", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &id })
        .end()
        .append("timeoutMinutes", SESSION_TIMEOUT_MINUTES);
    Ok(())
}
