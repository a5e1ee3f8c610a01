//! `killSessions`: stops the operations of sessions, aborts their transactions and closes their cursors.

use crate::authorization::Privileges;
use crate::authorization::own_sessions::Reach;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_errors::Failure;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Queueing};
use bunko_request::fields::wrong_type;
use bunko_session::Halt;
use bunko_session::sessions::{SessionId, id};

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "killSessions", fields: ANY_FIELDS, queueing: Queueing::AtOnce, ..CommandFacts::PLAIN },
    privileges: Privileges::Login,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let killed = sessions(invocation, Reach::of(invocation))?;
    // An empty list means all sessions of the user; without access control, all sessions.
    let own = Reach::own(invocation);
    kill(
        invocation,
        |session| if killed.is_empty() { own.includes(invocation, session) } else { killed.contains(&session) },
    );
    Ok(())
}

/// Stops the operations of the chosen sessions, aborts their transactions and closes their cursors.
pub(super) fn kill(invocation: &Invocation<'_>, is_chosen: impl Fn(SessionId) -> bool) {
    invocation.service.operations.kill_sessions(&is_chosen, invocation.opid());
    invocation.service.abort_transactions(|entry| is_chosen(entry.session.id));
    invocation.service.cursors.end_sessions(is_chosen);
}

/// The sessions that the command's first value lists: those of the client's user, unless an element gives the digest of
/// another.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse` and `IDLUnknownField`, which name the element; `Unauthorized` for a session of
/// another user, if `reach` is [`Reach::Own`].
pub(super) fn sessions(invocation: &Invocation<'_>, reach: Reach) -> Result<Vec<SessionId>, Failure> {
    let asker = invocation.service.session_user(invocation.connection);
    let name = invocation.command.name;
    let argument = invocation.argument();
    let array = argument.as_array().ok_or_else(|| wrong_type(&format!("{name}.{name}"), argument, "array"))?;
    // Null elements are ignored.
    let named = array.iter().enumerate().filter(|(_, value)| !value.is_nullish());
    let session = |(index, value)| {
        let named = id::parse(&format!("{name}.{name}.{index}"), value)?;
        if reach == Reach::All { named.of_any(asker) } else { named.of(asker) }
    };
    named.map(session).collect()
}
