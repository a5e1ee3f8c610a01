//! `endSessions`: ends sessions. Drivers send it when they close.

use super::kill_sessions::{kill, sessions};
use crate::authorization::Privileges;
use crate::authorization::own_sessions::Reach;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::Writer;

pub(super) const COMMAND: Command = Command {
    name: "endSessions",
    aliases: &[],
    fields: &[],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::Login,
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let ended = sessions(invocation, Reach::own(invocation))?;
    kill(invocation, |session| ended.contains(&session));
    for session in ended {
        invocation.service.sessions.end(session);
    }
    Ok(())
}
