//! `grantRolesToUser` and `revokeRolesFromUser`.

use crate::access_control::{begin_change, with_field};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::{Name, names_of};
use bunko_authority::audit::{Account, AuditEvent};
use bunko_authority::privileges::users;
use bunko_authority::{
    DATABASE, USERS, check_exist, check_grantable, documents_of, find_user, name_of_argument, role_names,
    user_not_found,
};
use bunko_bson::Writer;
use bunko_errors::{Failure, Result};
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "grantRolesToUser",
        fields: &[field("roles", Kind::Array)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::grant_roles),
    audit: AuditEvent::Account(Account::USER),
    run: grant,
};
pub(super) const REVOKE: Command = Command {
    facts: CommandFacts {
        name: "revokeRolesFromUser",
        fields: &[field("roles", Kind::Array)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::revoke_roles),
    audit: AuditEvent::Account(Account::USER),
    run: revoke,
};

fn grant(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    change(invocation, |invocation, held, granted| {
        check_grantable(&invocation.service.catalog, granted, None)?;
        add_missing(held, granted);
        Ok(())
    })
}

fn revoke(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    change(invocation, |invocation, held, revoked| {
        check_exist(&invocation.service.catalog, revoked)?;
        held.retain(|role| !revoked.contains(role));
        Ok(())
    })
}

fn change(
    invocation: &mut Invocation<'_>,
    apply: fn(&Invocation<'_>, &mut Vec<Name>, &[Name]) -> Result<()>,
) -> Result<(), Halt> {
    let name = name_of_argument(invocation, invocation.request.database)?;
    let roles = named_roles(invocation)?;
    let _only_one = begin_change(invocation)?;
    let document = find_user(&invocation.service.catalog, &name)?.ok_or_else(|| user_not_found(&name))?;
    let mut held = names_of(document.as_ref(), "roles", "role");
    apply(invocation, &mut held, &roles)?;
    let changed = with_field(document.as_ref(), "roles", Some((&documents_of(&held)).into()));
    stored_settings::keep(invocation, DATABASE, USERS, &changed)
}

/// The roles that the command names, at least one.
/// # Errors
/// `IDLFailedToParse` if the field is missing; `BadValue` if it is empty.
pub(super) fn named_roles(invocation: &Invocation<'_>) -> Result<Vec<Name>> {
    let command = invocation.command.name;
    let roles = role_names(invocation, "roles", invocation.request.database)?
        .ok_or_else(|| Failure::missing_field(format_args!("{command}.roles")))?;
    if roles.is_empty() {
        return Err(Failure::bad_value(format!("{command} command requires a non-empty \"roles\" array")));
    }
    Ok(roles)
}

/// Adds the names that `held` does not have yet.
pub(super) fn add_missing(held: &mut Vec<Name>, granted: &[Name]) {
    for role in granted {
        if !held.contains(role) {
            held.push(role.clone());
        }
    }
}
