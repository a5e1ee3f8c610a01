//! `killOp`: asks an operation to stop.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_bson::{Writer, number};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Databases, Queueing};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "killOp",
        fields: ANY_FIELDS,
        databases: Databases::Admin,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::ByServer(may_kill),
    run,
    ..Command::PLAIN
};

/// Whether the user may end any operation, or the operation is the user's own.
fn may_kill(service: &Service, asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let is_own = || {
        let user = parse_operation(request).ok().and_then(|id| service.operations.user_of(id));
        user.is_some_and(|user| asker.is(&user))
    };
    asker.on_cluster(Action::KillOp) || is_own()
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let operation = parse_operation(&invocation.request)?;
    invocation.service.operations.kill(operation);
    reply.append("info", "attempting to kill op");
    Ok(())
}

/// The id of the operation that is asked to stop.
fn parse_operation(request: &Request<'_>) -> Result<u32, Failure> {
    let value =
        request.body.get("op").ok_or_else(|| Failure::new(ErrorCode::NO_SUCH_KEY, "Missing expected field \"op\""))?;
    if !value.is_number() {
        return Err(Failure::type_mismatch(format!(
            "Expected field \"op\" to have numeric type, but found {}",
            value.kind().alias()
        )));
    }
    let id = number::as_i64_exact(value).ok_or_else(|| {
        Failure::bad_value("Expected field \"op\" to have a value exactly representable as a 64-bit integer")
    })?;
    if i32::try_from(id).is_err() {
        return Err(Failure::new(
            ErrorCode(26823),
            format!("invalid op : {id}. Op ID cannot be represented with 32 bits"),
        ));
    }
    Ok(id as u32)
}
