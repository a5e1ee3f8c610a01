//! `ping`: returns an empty reply.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_request::facts::{CommandFacts, Queueing, Stability};

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
