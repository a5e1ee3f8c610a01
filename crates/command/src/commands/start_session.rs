//! `startSession`: a new session's id.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use crate::parameters::SESSION_TIMEOUT_MINUTES;
use bunko_bson::{BinarySubtype, ValueRef, Writer};

pub(super) const COMMAND: Command =
    Command { name: "startSession", aliases: &[], fields: &[], databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let random = &invocation.service.world.random;
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random().to_le_bytes());
    id[8..].copy_from_slice(&random().to_le_bytes());
    // Version 4, variant 1. Source: RFC 9562, section 5.4.
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    reply
        .begin_document("id")
        .append("id", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &id })
        .end()
        .append("timeoutMinutes", SESSION_TIMEOUT_MINUTES);
    Ok(())
}
