//! `refreshSessions`: keeps sessions alive. They have no state that could expire, so only their ids are checked.

use super::kill_sessions::sessions;
use crate::dispatch::{Command, Databases, Halt};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command =
    Command { name: "refreshSessions", aliases: &[], fields: &[], databases: Databases::Any, run };

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    sessions(invocation)?;
    Ok(())
}
