//! `bunkoBulkInsert`: an insert for tools that load much data. The documents bypass the log.
//!
//! Fields, limits and reply are those of `insert`. A small batch is inserted in the usual way.

use super::insert;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::is_on_users;
use bunko_authority::privileges::writes;
use bunko_bson::Writer;
use bunko_catalog::Catalog;
use bunko_request::counted_as::OperationClass;
use bunko_request::facts::{Changes, CommandFacts, Secrets, WriteConcernUse};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "bunkoBulkInsert",
        fields: insert::FIELDS,
        changes: Changes::Documents,
        write_concern: WriteConcernUse::Taken,
        secrets: Secrets::OfUsers(is_on_users),
        class: OperationClass::Write,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(writes::insert),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    // The command waits for the disk.
    invocation.refuse_if_long(true)?;
    insert::run_with(invocation, reply, Catalog::insert_bulk)
}
