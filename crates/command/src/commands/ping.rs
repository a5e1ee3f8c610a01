//! `ping`: returns an empty reply.

use crate::authorization::Privileges;
use crate::command_entry::{Command, Queueing, Stability};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "ping",
    privileges: Privileges::BeforeLogin,
    stable_api: Stability::WHOLE,
    queueing: Queueing::AtOnce,
    run,
    ..Command::PLAIN
};

fn run(_invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    Ok(())
}
