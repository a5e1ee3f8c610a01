//! `refreshSessions`: keeps sessions alive, and begins sessions that are not known yet.

use super::kill_sessions::sessions;
use crate::authorization::Privileges;
use crate::authorization::own_sessions::Reach;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Stability};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "refreshSessions", stable_api: Stability::WHOLE, ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let now = invocation.now();
    for session in sessions(invocation, Reach::own(invocation))? {
        invocation.service.sessions.touch(session, now)?;
    }
    Ok(())
}
