//! `setUserWriteBlockMode`: blocks the writes of users, or allows them again.
//! Source: MongoDB manual 8.2, `setUserWriteBlockMode`.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{CommandFacts, Databases, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::required_value;
use bunko_session::Halt;
use bunko_settings::user_write_block::{COLLECTION, DATABASE, ID, Reason};
use std::time::Duration;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "setUserWriteBlockMode",
        fields: &[field("global", Kind::Boolean), field("reason", Kind::Text)],
        databases: Databases::Admin,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::SetUserWriteBlockMode),
    run,
    ..Command::PLAIN
};

/// Interval at which the command checks whether earlier writes have ended.
const LOOK: Duration = Duration::from_millis(1);

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let (blocks, reason) = parse(invocation)?;
    if invocation.service.replica_set.is_none() {
        let message = "setUserWriteBlockMode cannot be run on standalone nodes";
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    // The command waits for writes that began before the block.
    invocation.refuse_if_long(true)?;
    let block = &invocation.service.user_write_block;
    match (block.reason(), blocks) {
        (None, false) => Ok(()),
        (None, true) => {
            stored_settings::keep(invocation, DATABASE, COLLECTION, &reason.to_document())?;
            block.set(Some(reason));
            wait_for_writes(invocation)
        }
        (Some(present), true) if present == reason => wait_for_writes(invocation),
        (Some(present), false) if present == reason => {
            stored_settings::delete(invocation, DATABASE, COLLECTION, &DocumentBuf::new().with("_id", ID))?;
            block.set(None);
            Ok(())
        }
        (Some(_), true) => {
            let message =
                "Cannot acquire user writes critical section with different options than the already existing one";
            Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into())
        }
        (Some(_), false) => {
            let message =
                "Cannot release user writes critical section with different reason than the already-set reason";
            Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into())
        }
    }
}

/// Whether to block writes, and why.
fn parse(fields: &Fields<'_>) -> Result<(bool, Reason), Failure> {
    required_value(fields, "global")?;
    Ok((fields.strict_boolean("global", false)?, parse_reason(fields)?))
}

fn parse_reason(fields: &Fields<'_>) -> Result<Reason, Failure> {
    let Some(name) = fields.string("reason")? else { return Ok(Reason::Unspecified) };
    Reason::of(name).ok_or_else(|| {
        Failure::bad_value(format!(
            "Enumeration value '{name}' for field 'setUserWriteBlockMode.reason' is not a valid value."
        ))
    })
}

/// Waits for writes that began before the block, so that none is running when the command replies.
fn wait_for_writes(invocation: &Invocation<'_>) -> Result<(), Halt> {
    while invocation.service.operations.is_one_writing() {
        invocation.operation().check()?;
        std::thread::sleep(LOOK);
    }
    Ok(())
}
