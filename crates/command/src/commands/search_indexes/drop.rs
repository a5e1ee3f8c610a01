//! `dropSearchIndex`: drops a search index of a collection.

use super::{Wanted, collection};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;

pub(in crate::commands) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dropSearchIndex",
        fields: &[field("id", Kind::Own), field("name", Kind::Own)],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::DropSearchIndex),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let wanted = Wanted::parse_required(invocation)?;
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
