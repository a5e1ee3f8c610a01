//! `grantRolesToRole` and `revokeRolesFromRole`.

use super::create_role::own_document;
use super::grant_roles_to_user::{add_missing, named_roles};
use crate::access_control::{begin_change, with_field};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::{Name, names_of};
use bunko_authority::audit::{Account, AuditEvent};
use bunko_authority::privileges::users;
use bunko_authority::{DATABASE, ROLES, check_grantable, documents_of, name_of_argument};
use bunko_bson::Writer;
use bunko_errors::Result;
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "grantRolesToRole",
        fields: &[field("roles", Kind::Array)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::grant_roles),
    audit: AuditEvent::Account(Account::ROLE),
    run: grant,
};
pub(super) const REVOKE: Command = Command {
    facts: CommandFacts {
        name: "revokeRolesFromRole",
        fields: &[field("roles", Kind::Array)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::revoke_roles),
    audit: AuditEvent::Account(Account::ROLE),
    run: revoke,
};

fn grant(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    change(invocation, |invocation, name, held, granted| {
        check_grantable(&invocation.service.catalog, granted, Some(name))?;
        add_missing(held, granted);
        Ok(())
    })
}

fn revoke(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    change(invocation, |_, _, held, revoked| {
        held.retain(|role| !revoked.contains(role));
        Ok(())
    })
}

fn change(
    invocation: &mut Invocation<'_>,
    apply: fn(&Invocation<'_>, &Name, &mut Vec<Name>, &[Name]) -> Result<()>,
) -> Result<(), Halt> {
    let name = name_of_argument(invocation, invocation.request.database)?;
    let roles = named_roles(invocation)?;
    let _only_one = begin_change(invocation)?;
    let document = own_document(invocation, &name)?;
    let mut held = names_of(document.as_ref(), "roles", "role");
    apply(invocation, &name, &mut held, &roles)?;
    let changed = with_field(document.as_ref(), "roles", Some((&documents_of(&held)).into()));
    stored_settings::keep(invocation, DATABASE, ROLES, &changed)
}
