//! `endSessions`: ends sessions. Drivers send it when they close.

use super::kill_sessions::{kill, sessions};
use crate::authorization::Privileges;
use crate::authorization::own_sessions::Reach;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Stability};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "endSessions", stable_api: Stability::WHOLE, ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let ended = sessions(invocation, Reach::own(invocation))?;
    kill(invocation, |session| ended.contains(&session));
    for session in ended {
        invocation.service.sessions.end(session);
    }
    Ok(())
}
