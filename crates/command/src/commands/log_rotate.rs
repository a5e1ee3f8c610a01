//! `logRotate`: continues the server's log in a new file, as SIGUSR1 does.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::text::ValueText;
use bunko_bson::{ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{CommandFacts, Databases};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "logRotate", databases: Databases::Admin, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::LogRotate),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    match invocation.argument() {
        ValueRef::String("server") => {}
        ValueRef::String("audit") if invocation.service.authority.audit.is_on() => {
            return invocation.service.authority.rotate_audit().map_err(|error| failed(&error));
        }
        ValueRef::String(other) => {
            let logs = if invocation.service.authority.audit.is_on() { "'server' and 'audit'" } else { "'server'" };
            let message = format!("there is no log '{other}' to rotate, only {logs}");
            return Err(Failure::new(ErrorCode::NO_SUCH_KEY, message).into());
        }
        value if number::as_f64(value).is_some() || matches!(value, ValueRef::Boolean(_)) => {
            // A number or a boolean rotates all logs.
            invocation.service.authority.rotate_audit().map_err(|error| failed(&error))?;
        }
        value => {
            return Err(
                Failure::type_mismatch(format!("logRotate: {} is not a name of a log", ValueText(value))).into()
            );
        }
    }
    (invocation.service.process.rotate_log)().map_err(|error| failed(&error))
}

fn failed(error: &str) -> Halt {
    Failure::new(ErrorCode::OPERATION_FAILED, format!("Log rotation failed: {error}")).into()
}
