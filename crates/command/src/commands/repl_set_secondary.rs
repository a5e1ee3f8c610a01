//! `replSetMaintenance`, `replSetSyncFrom` and `replSetAbortPrimaryCatchUp`: commands that only secondaries, or a
//! primary that catches up, carry out. Members follow the primary alone, and a primary has the whole log when it is
//! elected, so all of them fail.

use super::repl_set_get_status::no_set;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure};
use bunko_request::facts::{CommandFacts, Databases};
use bunko_session::Halt;

pub(super) const MAINTENANCE: Command = command("replSetMaintenance", maintenance);
pub(super) const SYNC_FROM: Command = command("replSetSyncFrom", sync_from);
pub(super) const ABORT_CATCH_UP: Command = command("replSetAbortPrimaryCatchUp", abort_catch_up);

/// The function of a command.
type Run = fn(&mut Invocation<'_>, &mut Writer<'_>) -> Result<(), Halt>;

const fn command(name: &'static str, run: Run) -> Command {
    Command {
        facts: CommandFacts { name, databases: Databases::Admin, ..CommandFacts::PLAIN },
        privileges: Privileges::OnCluster(Action::ReplSetStateChange),
        run,
        ..Command::PLAIN
    }
}

fn maintenance(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    refuse_on_primary(invocation, "primaries can't modify maintenance mode")?;
    Err(Failure::not_supported_yet("maintenance mode").into())
}

fn sync_from(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    if !matches!(invocation.argument(), ValueRef::String(host) if !host.is_empty()) {
        return Err(Failure::failed_to_parse("'replSetSyncFrom' takes the host and port of a member").into());
    }
    refuse_on_primary(invocation, "primaries don't sync")?;
    Err(Failure::not_supported_yet("another source of the log than the primary").into())
}

fn refuse_on_primary(invocation: &Invocation<'_>, message: &str) -> Result<(), Failure> {
    let set = invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    if set.is_primary() { Err(Failure::new(ErrorCode::NOT_SECONDARY, message)) } else { Ok(()) }
}

fn abort_catch_up(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let set = invocation.service.replica_set.as_ref().ok_or_else(no_set)?;
    if !set.is_primary() {
        return Err(Failure::new(ErrorCode::NOT_WRITABLE_PRIMARY, "The node is not a primary.").into());
    }
    Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, "The node is not in catch-up mode.").into())
}
