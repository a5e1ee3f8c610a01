//! `usersInfo`: the users; none, as there are no users.

use crate::dispatch::{Command, Databases, Halt};
use crate::fields::Fields;
use crate::invocation::Invocation;
use bunko_bson::{DocumentRef, ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const COMMAND: Command = Command {
    name: "usersInfo",
    aliases: &[],
    fields: &["showAuthenticationRestrictions", "showCredentials", "showCustomData", "showPrivileges", "filter"],
    databases: Databases::Any,
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    match invocation.argument() {
        ValueRef::Document(all) if all.get("forAllDBs").is_some() => {}
        argument => check_names(invocation, argument, "user")?,
    }
    for option in ["showAuthenticationRestrictions", "showCredentials", "showCustomData", "showPrivileges"] {
        invocation.boolean(option, false)?;
    }
    invocation.document("filter")?;
    reply.begin_array("users").end();
    Ok(())
}

/// Checks 1, a name, `{<key>: name, db: database}`, or an array of the latter two.
/// # Errors
/// `BadValue`.
pub(super) fn check_names(fields: &Fields<'_>, argument: ValueRef<'_>, key: &str) -> Result<()> {
    match argument {
        ValueRef::Array(names) => names.iter().try_for_each(|name| check_name(fields, name, key)),
        number if number::as_i64_exact(number) == Some(1) => Ok(()),
        name => check_name(fields, name, key),
    }
}

fn check_name(fields: &Fields<'_>, name: ValueRef<'_>, key: &str) -> Result<()> {
    let is_string =
        |document: DocumentRef<'_>, field| document.get(field).is_some_and(|value| value.as_str().is_some());
    match name {
        ValueRef::String(_) => Ok(()),
        ValueRef::Document(name) if is_string(name, key) && is_string(name, "db") => Ok(()),
        other => {
            let message = format!(
                "'{}' takes 1, names, and objects with '{key}' and 'db', but got {}",
                fields.command,
                other.kind().alias()
            );
            Err(Failure::new(ErrorCode::BAD_VALUE, message))
        }
    }
}
