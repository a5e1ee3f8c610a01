//! `grantPrivilegesToRole` and `revokePrivilegesFromRole`.

use super::create_role::{own_document, privilege_documents};
use crate::access_control::{begin_change, with_field};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::{Privilege, add, privileges_of, take_off};
use bunko_authority::audit::{Account, AuditEvent};
use bunko_authority::privileges::users;
use bunko_authority::{DATABASE, ROLES, check_privileges_grantable, name_of_argument, privileges};
use bunko_errors::Failure;
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "grantPrivilegesToRole",
        fields: &[field("privileges", Kind::Array)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::grant_privileges),
    audit: AuditEvent::Account(Account { shows: &["privileges"], ..Account::ROLE }),
    run: |invocation, _| change(invocation, grant),
};
pub(super) const REVOKE: Command = Command {
    facts: CommandFacts {
        name: "revokePrivilegesFromRole",
        fields: &[field("privileges", Kind::Array)],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::revoke_privileges),
    audit: AuditEvent::Account(Account { shows: &["privileges"], ..Account::ROLE }),
    run: |invocation, _| change(invocation, take_off),
};

fn grant(held: &mut Vec<Privilege>, privilege: &Privilege) {
    add(held, privilege.clone());
}

fn change(invocation: &mut Invocation<'_>, apply: fn(&mut Vec<Privilege>, &Privilege)) -> Result<(), Halt> {
    let command = invocation.command.name;
    let name = name_of_argument(invocation, invocation.request.database)?;
    let named = privileges(invocation)?.ok_or_else(|| Failure::missing_field(format_args!("{command}.privileges")))?;
    if named.is_empty() {
        let message = format!("{command} command requires a non-empty \"privileges\" array");
        return Err(Failure::bad_value(message).into());
    }
    let _only_one = begin_change(invocation)?;
    let document = own_document(invocation, &name)?;
    check_privileges_grantable(&named, &name)?;
    let mut held = privileges_of(document.as_ref());
    for privilege in &named {
        apply(&mut held, privilege);
    }
    let changed = with_field(document.as_ref(), "privileges", Some((&privilege_documents(&held)).into()));
    stored_settings::keep(invocation, DATABASE, ROLES, &changed)
}
