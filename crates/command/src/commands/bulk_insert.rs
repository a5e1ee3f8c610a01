//! `bunkoBulkInsert`: an insert for tools that load much data. The documents bypass the log.
//!
//! Fields, limits and reply are those of `insert`. A small batch is inserted in the usual way.

use super::insert;
use crate::authorization::{Privileges, writes};
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::invocation::Invocation;
use bunko_bson::Writer;
use bunko_catalog::Catalog;

pub(super) const COMMAND: Command = Command {
    name: "bunkoBulkInsert",
    aliases: &[],
    fields: insert::FIELDS,
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::By(writes::insert),
    run,
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    // The command waits for the disk.
    invocation.refuse_if_long(true)?;
    insert::run_with(invocation, reply, Catalog::insert_bulk)
}
