//! `bunkoBulkInsert`: an insert for tools that load much data. The documents bypass the log.
//!
//! Fields, limits and reply are those of `insert`. A small batch is inserted in the usual way.

use super::insert;
use crate::access_control::is_on_users;
use crate::authorization::{Privileges, writes};
use crate::command_entry::{Changes, Command, Secrets, WriteConcernUse};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::operation_class::OperationClass;
use bunko_bson::Writer;
use bunko_catalog::Catalog;

pub(super) const COMMAND: Command = Command {
    name: "bunkoBulkInsert",
    fields: insert::FIELDS,
    privileges: Privileges::By(writes::insert),
    changes: Changes::Documents,
    write_concern: WriteConcernUse::Taken,
    secrets: Secrets::OfUsers(is_on_users),
    class: OperationClass::Write,
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    // The command waits for the disk.
    invocation.refuse_if_long(true)?;
    insert::run_with(invocation, reply, Catalog::insert_bulk)
}
