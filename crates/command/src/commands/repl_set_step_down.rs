//! `replSetStepDown` and `replSetFreeze`: always fail, because no other member could become primary.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{Writer, number};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "replSetStepDown",
        fields: &[field("secondaryCatchUpPeriodSecs", Kind::Own), field("force", Kind::Own)],
        databases: Databases::Admin,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::ReplSetStateChange),
    run,
    ..Command::PLAIN
};
pub(super) const FREEZE: Command = Command {
    facts: CommandFacts { name: "replSetFreeze", databases: Databases::Admin, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::ReplSetStateChange),
    run: freeze,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    let seconds = number::clamp_to_i64(invocation.argument()).unwrap_or_default();
    if seconds < 0 {
        return Err(Failure::bad_value("stepdown period must be a positive integer").into());
    }
    let (catch_up, is_forced) = parse(invocation)?;
    if seconds > 0 && catch_up.is_some_and(|catch_up| (seconds as u64) < catch_up) {
        let message = "stepdown period must be longer than secondaryCatchUpPeriodSecs";
        return Err(Failure::bad_value(message).into());
    }
    if is_forced {
        return Err(Failure::not_supported_yet("stepping down by force").into());
    }
    // MongoDB first waits for other members to catch up. This set has none, so the command fails at once.
    let message = "No electable secondaries caught up. Please use the replSetStepDown command with the argument \
                   {force: true} to force node to step down.";
    Err(Failure::new(ErrorCode::EXCEEDED_TIME_LIMIT, message).into())
}

/// The time that secondaries have to catch up, in seconds, if it is given; and whether to step down by force.
fn parse(fields: &Fields<'_>) -> Result<(Option<u64>, bool), Failure> {
    Ok((fields.size("secondaryCatchUpPeriodSecs")?, fields.boolean("force", false)?))
}

fn freeze(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    let message = "cannot freeze node when primary or running for election. state: Primary";
    Err(Failure::new(ErrorCode::NOT_SECONDARY, message).into())
}
