//! `commitTransaction`: makes the writes of a transaction visible, or finds that it was committed before.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{Changes, CommandFacts, Databases, Queueing, Stability, TransactionUse, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "commitTransaction",
        fields: &[field("recoveryToken", Kind::Object), field("commitTimestamp", Kind::Timestamp)],
        databases: Databases::Admin,
        transaction: TransactionUse::Commits,
        changes: Changes::Other,
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
    let has_timestamp = parse(invocation);
    check_is_inside(invocation)?;
    if has_timestamp {
        let message = "commitTransaction cannot provide commitTimestamp to unprepared transaction.";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message).into());
    }
    let written = invocation.commit_transaction()?;
    invocation.note_written(written);
    Ok(())
}

/// Whether there is a `commitTimestamp`.
fn parse(fields: &Fields<'_>) -> bool {
    fields.field("commitTimestamp").is_some()
}

/// Refuses the command outside a transaction.
pub(super) fn check_is_inside(invocation: &Invocation<'_>) -> Result<(), Failure> {
    if invocation.is_of_transaction() {
        return Ok(());
    }
    let message = format!("{} must be run within a transaction", invocation.command.name);
    Err(Failure::new(ErrorCode::COMMAND_FAILED, message))
}
