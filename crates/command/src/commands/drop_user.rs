//! `dropUser` and `dropAllUsersFromDatabase`: drop users. Connections that are logged in as them lose their login.

use crate::access_control::begin_change;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Action;
use bunko_authority::audit::{Account, AuditEvent};
use bunko_authority::{DATABASE, USERS, find_user, name_of_argument, user_not_found};
use bunko_bson::{DocumentBuf, Writer};
use bunko_request::facts::{Changes, CommandFacts, WriteConcernUse};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dropUser",
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnDatabase(Action::DropUser),
    audit: AuditEvent::Account(Account::USER),
    run,
};
pub(super) const ALL: Command = Command {
    facts: CommandFacts {
        name: "dropAllUsersFromDatabase",
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnDatabase(Action::DropUser),
    audit: AuditEvent::Database,
    run: run_all,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let name = name_of_argument(invocation, invocation.request.database)?;
    let _only_one = begin_change(invocation)?;
    if find_user(&invocation.service.catalog, &name)?.is_none() {
        return Err(user_not_found(&name).into());
    }
    stored_settings::delete(invocation, DATABASE, USERS, &DocumentBuf::new().with("_id", &name.id())).map(drop)
}

fn run_all(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let _only_one = begin_change(invocation)?;
    let filter = DocumentBuf::new().with("db", invocation.request.database);
    let deleted = stored_settings::delete(invocation, DATABASE, USERS, &filter)?;
    reply.append("n", deleted as i32);
    Ok(())
}
