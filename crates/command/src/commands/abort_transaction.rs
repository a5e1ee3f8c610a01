//! `abortTransaction`: discards the writes of a transaction.

use super::commit_transaction::check_is_inside;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Databases, Queueing, Stability, TransactionUse, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "abortTransaction",
        fields: &[field("recoveryToken", Kind::Object)],
        databases: Databases::Admin,
        transaction: TransactionUse::Aborts,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    check_is_inside(invocation)?;
    invocation.abort_transaction();
    Ok(())
}
