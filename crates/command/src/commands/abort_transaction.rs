//! `abortTransaction`: discards the writes of a transaction.

use super::commit_transaction::check_is_inside;
use crate::authorization::Privileges;
use crate::command_entry::{Command, Databases, Queueing, Stability, TransactionUse, WriteConcernUse};
use crate::dispatch::Halt;
use crate::field_kinds::{Kind, field};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "abortTransaction",
    fields: &[field("recoveryToken", Kind::Object)],
    databases: Databases::Admin,
    transaction: TransactionUse::Aborts,
    privileges: Privileges::Login,
    write_concern: WriteConcernUse::Taken,
    stable_api: Stability::WHOLE,
    queueing: Queueing::AtOnce,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    check_is_inside(invocation)?;
    invocation.abort_transaction();
    Ok(())
}
