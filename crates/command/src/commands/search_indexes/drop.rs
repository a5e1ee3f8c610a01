//! `dropSearchIndex`: drops a search index of a collection.

use super::{Wanted, collection};
use crate::authorization::Privileges;
use crate::dispatch::{Command, Databases, Halt, TransactionUse};
use crate::field_kinds::{Kind, field};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;

pub(in crate::commands) const COMMAND: Command = Command {
    name: "dropSearchIndex",
    aliases: &[],
    fields: &[field("id", Kind::Own), field("name", Kind::Own)],
    databases: Databases::Any,
    transaction: TransactionUse::Refused,
    privileges: Privileges::OnCollection(Action::DropSearchIndex),
    run,
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let wanted = Wanted::required(invocation)?;
    let collection = collection(invocation, &namespace)?;
    let catalog = &invocation.service.catalog;
    let written = catalog.change_search_indexes(&collection, invocation, &mut |before| {
        let mut after = before.to_vec();
        after.remove(wanted.position(before, &namespace)?);
        Ok(after)
    })?;
    invocation.note_written(Some(written));
    Ok(())
}
