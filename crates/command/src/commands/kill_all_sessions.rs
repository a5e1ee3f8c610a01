//! `killAllSessions`: ends the sessions of all users or of the named users. For administrators.

use super::kill_sessions::kill;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::{Action, Name};
use bunko_bson::{DocumentRef, Writer};
use bunko_errors::Failure;
use bunko_request::facts::{ANY_FIELDS, CommandFacts, Queueing};
use bunko_request::fields::Fields;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "killAllSessions",
        fields: ANY_FIELDS,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCluster(Action::KillAnySession),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument();
    let users = argument
        .as_array()
        .ok_or_else(|| Failure::wrong_type("killAllSessions.killAllSessions", argument, "type 'array'"))?;
    let mut chosen = Vec::new();
    // Null elements are ignored, as in MongoDB.
    for (index, user) in users.iter().enumerate().filter(|(_, user)| !user.is_nullish()) {
        let user = user.as_document().ok_or_else(|| {
            Failure::wrong_type(format_args!("killAllSessions.killAllSessions.{index}"), user, "type 'object'")
        })?;
        chosen.push(parse_name(user)?.digest());
    }
    // An empty list means all sessions. Without access control sessions have no user, so a list of users matches none.
    kill(invocation, |session| chosen.is_empty() || chosen.contains(&session.user));
    Ok(())
}

fn parse_name(user: DocumentRef<'_>) -> Result<Name, Failure> {
    if let Some(unknown) = user.iter().find(|field| !matches!(field.name, "user" | "db")) {
        return Err(Failure::unknown_field(format_args!("KillAllSessionsUser.{}", unknown.name)));
    }
    let fields = Fields::new("KillAllSessionsUser", user);
    let part = |name: &str| fields.string(name)?.ok_or_else(|| fields.missing(name));
    Ok(Name::new(part("user")?, part("db")?))
}
