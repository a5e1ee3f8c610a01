//! `profile`: from which duration on operations are logged. There is no profiler, so its level is always 0.

use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::{ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "profile",
    aliases: &[],
    fields: &["slowms", "sampleRate", "filter"],
    databases: Databases::Any,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    match number::as_i64_exact(invocation.argument()) {
        Some(-1 | 0) => {}
        Some(level @ (1 | 2)) => {
            let message = format!("profile level {level} is not supported yet: there is no profiler");
            return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message).into());
        }
        _ => return Err(Failure::bad_value("the profile level is -1, 0, 1 or 2").into()),
    }
    if invocation.field("filter").is_some() {
        return Err(invocation.unsupported("filter").into());
    }
    if invocation.field("sampleRate").is_some_and(|rate| number::as_f64(rate) != Some(1.0)) {
        return Err(invocation.unsupported("sampleRate").into());
    }
    let parameters = &invocation.service.parameters;
    let was_ms = parameters.slow_operation().as_millis() as i32;
    if let Some(milliseconds) = invocation.integer("slowms")? {
        let milliseconds = i32::try_from(milliseconds).ok().and_then(|milliseconds| u32::try_from(milliseconds).ok());
        let milliseconds = milliseconds.ok_or_else(|| Failure::bad_value("slowms is a number from 0 to 2147483647"))?;
        parameters.set_slow_operation_ms(milliseconds);
    }
    reply.append("was", 0).append("slowms", ValueRef::Int32(was_ms)).append("sampleRate", 1.0);
    Ok(())
}
