//! `dropRole` and `dropAllRolesFromDatabase`: drop roles, and take them away from the users and roles that have them.

use super::create_role::own_document;
use super::drop_user::delete;
use crate::access_control::{BuiltinShown, ROLES, begin_change, name_of_argument, roles_of_database, take_roles_away};
use crate::audit::{Account, AuditEvent};
use crate::authorization::Privileges;
use crate::command_entry::{Changes, Command, WriteConcernUse};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, Writer};

pub(super) const COMMAND: Command = Command {
    name: "dropRole",
    privileges: Privileges::OnDatabase(Action::DropRole),
    changes: Changes::Other,
    write_concern: WriteConcernUse::Taken,
    audit: AuditEvent::Account(Account::ROLE),
    run,
    ..Command::PLAIN
};
pub(super) const ALL: Command = Command {
    name: "dropAllRolesFromDatabase",
    privileges: Privileges::OnDatabase(Action::DropRole),
    changes: Changes::Other,
    write_concern: WriteConcernUse::Taken,
    audit: AuditEvent::Database,
    run: run_all,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let name = name_of_argument(invocation, invocation.request.database)?;
    let _only_one = begin_change(invocation)?;
    own_document(invocation, &name)?;
    take_roles_away(invocation, std::slice::from_ref(&name))?;
    delete(invocation, ROLES, &DocumentBuf::new().with("_id", &name.id())).map(drop)
}

fn run_all(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let _only_one = begin_change(invocation)?;
    let database = invocation.request.database;
    let roles = roles_of_database(invocation, database, BuiltinShown::No)?;
    take_roles_away(invocation, &roles.into_iter().map(|role| role.name).collect::<Vec<_>>())?;
    let deleted = delete(invocation, ROLES, &DocumentBuf::new().with("db", database))?;
    reply.append("n", deleted as i32);
    Ok(())
}
