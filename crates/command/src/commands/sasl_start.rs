//! `saslStart`, `saslContinue` and `authenticate`: there are no users, so nobody can log in.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "saslStart",
    aliases: &[],
    fields: &["mechanism", "payload", "autoAuthorize", "options", "db"],
    databases: Databases::Any,
    run: refuse,
};
pub(super) const CONTINUE: Command = Command {
    name: "saslContinue",
    aliases: &[],
    fields: &["conversationId", "payload"],
    databases: Databases::Any,
    run: refuse_to_continue,
};
pub(super) const AUTHENTICATE: Command = Command {
    name: "authenticate",
    aliases: &[],
    fields: &["mechanism", "user", "pwd", "nonce", "key", "db"],
    databases: Databases::Any,
    run: refuse,
};

/// As MongoDB does where a user does not exist.
fn refuse(_: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    Err(Failure::new(ErrorCode::AUTHENTICATION_FAILED, "Authentication failed.").into())
}

fn refuse_to_continue(_: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    Err(Failure::new(ErrorCode::PROTOCOL_ERROR, "No SASL session state found").into())
}
