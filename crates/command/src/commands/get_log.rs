//! `getLog`: the last lines of the server's log.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_bson::text::ValueText;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{CommandFacts, Databases, Queueing};
use bunko_session::Halt;

/// The logs that a client can ask for.
const NAMES: [&str; 2] = ["global", "startupWarnings"];

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "getLog",
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::GetLog),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument();
    if argument.is_nullish() {
        return Err(Failure::missing_field("getLog.getLog").into());
    }
    let name = argument.as_str().ok_or_else(|| {
        Failure::type_mismatch(format!(
            "Argument to getLog must be of type String; found {} of type {}",
            ValueText(argument),
            argument.kind().alias()
        ))
    })?;
    match name {
        "*" => {
            reply.begin_array("names");
            for (index, name) in NAMES.iter().enumerate() {
                reply.push(index, *name);
            }
            reply.end();
        }
        "global" => {
            let (lines, total) = invocation.service.log_lines.snapshot();
            write_lines(reply, &lines, total);
        }
        "startupWarnings" => {
            let warnings = invocation.service.log_lines.startup_warnings();
            write_lines(reply, &warnings, warnings.len() as u64);
        }
        _ => return Err(Failure::new(ErrorCode::OPERATION_FAILED, format!("No log named '{name}'")).into()),
    }
    Ok(())
}

fn write_lines(reply: &mut Writer<'_>, lines: &[String], total: u64) {
    reply.append("totalLinesWritten", i32::try_from(total).unwrap_or(i32::MAX)).begin_array("log");
    for (index, line) in lines.iter().enumerate() {
        reply.push(index, line);
    }
    reply.end();
}
