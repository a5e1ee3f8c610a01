//! `killAllSessionsByPattern`: `killAllSessions` for the sessions that match one of several patterns.

use super::kill_sessions::kill;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_errors::Failure;
use bunko_request::facts::{ANY_FIELDS, CommandFacts};
use bunko_request::fields::wrong_type;
use bunko_session::Halt;
use bunko_session::sessions::SessionPattern;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "killAllSessionsByPattern", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::KillAnySession),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    const PLACE: &str = "killAllSessionsByPattern.killAllSessionsByPattern";
    let argument = invocation.argument();
    let patterns = argument.as_array().ok_or_else(|| wrong_type(PLACE, argument, "array"))?;
    let parse = |(index, pattern): (usize, bunko_bson::ValueRef<'_>)| {
        let mismatch = || wrong_type(&format!("{PLACE}.{index}"), pattern, "object");
        SessionPattern::parse(pattern.as_document().ok_or_else(mismatch)?)
    };
    // Null elements are ignored.
    let given = patterns.iter().enumerate().filter(|(_, pattern)| !pattern.is_nullish());
    let patterns = given.map(parse).collect::<Result<Vec<_>, Failure>>()?;
    if invocation.service.authority.access.is_enforced()
        && patterns.iter().any(|pattern| matches!(pattern, SessionPattern::OfOwners(_) | SessionPattern::OfRoles))
    {
        return Err(Failure::not_supported_yet("to impersonate 'users' or 'roles' in killAllSessionsByPattern").into());
    }
    // An empty list matches all sessions.
    kill(invocation, |session| patterns.is_empty() || patterns.iter().any(|pattern| pattern.chooses(session)));
    Ok(())
}
