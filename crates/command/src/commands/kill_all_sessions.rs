//! `killAllSessions`: `killSessions` for an administrator.

use super::kill_sessions::kill;
use crate::authorization::Privileges;
use crate::dispatch::{ANY_FIELDS, Command, Databases, Halt, TransactionUse};
use crate::fields::Fields;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, Writer};
use bunko_errors::{ErrorCode, Failure};

pub(super) const COMMAND: Command = Command {
    name: "killAllSessions",
    aliases: &[],
    fields: ANY_FIELDS,
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCluster(Action::KillAnySession),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let argument = invocation.argument();
    let users = argument.as_array().ok_or_else(|| {
        Failure::type_mismatch(format!(
            "BSON field 'killAllSessions.killAllSessions' is the wrong type '{}', expected type 'array'",
            argument.kind().alias()
        ))
    })?;
    let mut count = 0;
    for user in users.iter() {
        let user = user.as_document().ok_or_else(|| {
            Failure::type_mismatch(format!(
                "BSON field 'killAllSessions.killAllSessions.{count}' is the wrong type '{}', expected type 'object'",
                user.kind().alias()
            ))
        })?;
        check_user(user)?;
        count += 1;
    }
    // There are no users yet, so nobody named has a session; an empty list means everybody.
    if count == 0 {
        kill(invocation, |_| true);
    }
    Ok(())
}

fn check_user(user: DocumentRef<'_>) -> Result<(), Failure> {
    if let Some(unknown) = user.iter().find(|field| !matches!(field.name, "user" | "db")) {
        let message = format!("BSON field 'KillAllSessionsUser.{}' is an unknown field.", unknown.name);
        return Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message));
    }
    let fields = Fields::new("KillAllSessionsUser", user);
    for name in ["user", "db"] {
        fields.string(name)?.ok_or_else(|| {
            let message = format!("BSON field 'KillAllSessionsUser.{name}' is missing but a required field");
            Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
        })?;
    }
    Ok(())
}
