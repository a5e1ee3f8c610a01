//! `commitTransaction`: makes visible what a transaction did, or finds that it has been.

use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "commitTransaction",
    aliases: &[],
    fields: &["recoveryToken"],
    databases: Databases::Admin,
    transaction: TransactionUse::Commits,
    privileges: Privileges::Login,
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    check_is_inside(invocation)?;
    let written = invocation.commit_transaction()?;
    invocation.note_written(written);
    Ok(())
}

/// Refuses the command outside a transaction.
pub(super) fn check_is_inside(invocation: &Invocation<'_>) -> Result<(), Failure> {
    if invocation.is_of_transaction() {
        return Ok(());
    }
    let message = format!("{} must be run within a transaction", invocation.command.name);
    Err(Failure::new(ErrorCode::COMMAND_FAILED, message))
}
