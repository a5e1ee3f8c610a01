//! `replSetStepDown` and `replSetFreeze`. In a set of several members a primary hands over to one that has the whole
//! log. In a set of one no other member can become primary, so the primary steps down only by force, and elects itself
//! again afterwards.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{Writer, number};
use bunko_errors::{ErrorCode, Failure};
use bunko_members::{Force, Members};
use bunko_request::facts::{CommandFacts, Databases};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::sync::Arc;
use std::time::Duration;

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

/// The time for which a primary steps down if the client asks for no time.
const PERIOD_SECONDS: i64 = 60;
/// The time that secondaries have to catch up if the client names none, unless it steps the primary down by force.
const CATCH_UP_SECONDS: u64 = 10;

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let set = invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    let seconds = match number::clamp_to_i64(invocation.argument()).unwrap_or_default() {
        0 => PERIOD_SECONDS,
        ..0 => return Err(Failure::bad_value("stepdown period must be a positive integer").into()),
        seconds => seconds,
    };
    let (catch_up, is_forced) = parse(invocation)?;
    if (seconds as u64) < catch_up {
        let message = "stepdown period must be longer than secondaryCatchUpPeriodSecs";
        return Err(Failure::bad_value(message).into());
    }
    let no_primary = || Failure::new(ErrorCode::NOT_WRITABLE_PRIMARY, "not primary so can't step down");
    if !set.is_primary() {
        return Err(no_primary().into());
    }
    if let Some(members) = service_members(invocation) {
        let operation = invocation.operation();
        operation.leave_shared_thread()?;
        let force = if is_forced { Force::Yes } else { Force::No };
        let (catch_up, seconds) = (period(catch_up as i64), period(seconds));
        let check = || operation.check();
        return Ok(members.step_down(catch_up, seconds.saturating_sub(catch_up), force, &check)?);
    }
    if !is_forced {
        // MongoDB first waits for other members to catch up. This set has none, so the command fails at once.
        let message = "No electable secondaries caught up. Please use the replSetStepDown command with the argument \
                       {force: true} to force node to step down.";
        return Err(Failure::new(ErrorCode::EXCEEDED_TIME_LIMIT, message).into());
    }
    // The step-down waits for an open chain.
    invocation.operation().leave_shared_thread()?;
    if invocation.service.step_down(period(seconds)) { Ok(()) } else { Err(no_primary().into()) }
}

fn service_members<'s>(invocation: &Invocation<'s>) -> Option<&'s Arc<Members>> {
    invocation.service.members()
}

/// A time in seconds, at most some 136 years.
fn period(seconds: i64) -> Duration {
    Duration::from_secs(seconds.clamp(0, i64::from(u32::MAX)) as u64)
}

/// The time that secondaries have to catch up, in seconds, and whether to step down by force.
fn parse(fields: &Fields<'_>) -> Result<(u64, bool), Failure> {
    let (catch_up, is_forced) = (fields.size("secondaryCatchUpPeriodSecs")?, fields.boolean("force", false)?);
    Ok((catch_up.unwrap_or(if is_forced { 0 } else { CATCH_UP_SECONDS }), is_forced))
}

fn freeze(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let service = invocation.service;
    let set = service.replica_set.as_ref().ok_or_else(no_set)?;
    if set.is_primary() {
        let message = "cannot freeze node when primary or running for election. state: Primary";
        return Err(Failure::new(ErrorCode::NOT_SECONDARY, message).into());
    }
    let seconds = number::clamp_to_i64(invocation.argument()).unwrap_or_default();
    if let (Some(members), 0..) = (service.members(), seconds) {
        members.freeze(period(seconds));
        match seconds {
            0 => {
                reply.append("info", "unfreezing");
            }
            1 => {
                reply.append("warning", "you really want to freeze for only 1 second?");
            }
            _ => {}
        }
        return Ok(());
    }
    match seconds {
        ..0 => return Err(Failure::bad_value("freeze period must not be negative").into()),
        0 => {
            invocation.operation().leave_shared_thread()?;
            set.leadership.freeze(None);
            // The only member does not wait for the next look at the time.
            service.step_up()?;
            reply.append("info", "unfreezing");
        }
        seconds => {
            set.leadership.freeze(Some(service.world.clock.now() + period(seconds)));
            if seconds == 1 {
                reply.append("warning", "you really want to freeze for only 1 second?");
            }
        }
    }
    Ok(())
}
