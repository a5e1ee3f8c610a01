//! `listSearchIndexes`: the output of `$listSearchIndexes`, as a command.

use super::Wanted;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::document_list::{parse_batch_size, write_document_list};
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::Writer;
use bunko_pipelines::source_stages::describe_search_index;
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Kind, field};
use bunko_session::Halt;
use std::sync::Arc;

pub(in crate::commands) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "listSearchIndexes",
        fields: &[field("id", Kind::Own), field("name", Kind::Own), field("cursor", Kind::Own)],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::ListSearchIndexes),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let (wanted, batch_size) = (Wanted::parse(invocation)?, parse_batch_size(invocation)?);
    let collection = invocation.collection(&namespace);
    let indexes = collection.iter().flat_map(|collection| {
        let indexes = collection.search_indexes();
        (0..indexes.len()).map(move |at| (collection, Arc::clone(&indexes[at])))
    });
    let host = &invocation.service.facts.host;
    let shown = indexes.filter(|(_, index)| wanted.as_ref().is_none_or(|wanted| wanted.is(index)));
    let shown = shown.map(|(collection, index)| describe_search_index(collection, &index, host)).collect();
    Ok(write_document_list(invocation, reply, &namespace, shown, batch_size)?)
}
