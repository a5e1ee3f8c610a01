//! `ping`: returns an empty reply.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Queueing, Stability};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "ping",
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::BeforeLogin,
    run,
    ..Command::PLAIN
};

fn run(_invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    Ok(())
}
