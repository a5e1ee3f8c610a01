//! `dropRole` and `dropAllRolesFromDatabase`: drop roles, and take them away from the users and roles that have them.

use super::create_role::own_document;
use crate::access_control::{BuiltinShown, begin_change, roles_of_database, take_roles_away};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Action;
use bunko_authority::audit::{Account, AuditEvent};
use bunko_authority::{DATABASE, ROLES, name_of_argument};
use bunko_bson::{DocumentBuf, Writer};
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dropRole",
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnDatabase(Action::DropRole),
    audit: AuditEvent::Account(Account::ROLE),
    run,
};
pub(super) const ALL: Command = Command {
    facts: CommandFacts {
        name: "dropAllRolesFromDatabase",
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnDatabase(Action::DropRole),
    audit: AuditEvent::Database,
    run: run_all,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let name = name_of_argument(invocation, invocation.request.database)?;
    let _only_one = begin_change(invocation)?;
    own_document(invocation, &name)?;
    take_roles_away(invocation, std::slice::from_ref(&name))?;
    stored_settings::delete(invocation, DATABASE, ROLES, &DocumentBuf::new().with("_id", &name.id())).map(drop)
}

fn run_all(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let _only_one = begin_change(invocation)?;
    let database = invocation.request.database;
    let roles = roles_of_database(invocation, database, BuiltinShown::No)?;
    take_roles_away(invocation, &roles.into_iter().map(|role| role.name).collect::<Vec<_>>())?;
    let deleted = stored_settings::delete(invocation, DATABASE, ROLES, &DocumentBuf::new().with("db", database))?;
    reply.append("n", deleted as i32);
    Ok(())
}
