//! `updateSearchIndex`: replaces the definition of a search index by one of the same type.

use super::{Wanted, collection};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentRef, Writer};
use bunko_catalog::SearchIndex;
use bunko_errors::Result;
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_search::SearchIndexDefinition;
use bunko_session::Halt;
use std::sync::Arc;

pub(in crate::commands) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "updateSearchIndex",
        fields: &[field("id", Kind::Own), field("name", Kind::Own), field("definition", Kind::Own)],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::UpdateSearchIndex),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, _: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let wanted = Wanted::parse_required(invocation)?;
    let sent = parse_definition(invocation)?;
    let collection = collection(invocation, &namespace)?;
    let now_ms = invocation.service.world.now_ms();
    let catalog = &invocation.service.catalog;
    let written = catalog.change_search_indexes(&collection, invocation, &mut |before| {
        let position = wanted.position(before, &namespace)?;
        let present = &before[position];
        let definition = SearchIndexDefinition::parse(present.definition.kind(), sent, "userCommand.definition")?;
        let mut after = before.to_vec();
        after[position] = Arc::new(SearchIndex {
            version: present.version + 1,
            created_at_ms: now_ms,
            sent: sent.to_owned(),
            definition,
            ..SearchIndex::clone(present)
        });
        Ok(after)
    })?;
    invocation.note_written(Some(written));
    Ok(())
}

fn parse_definition<'a>(fields: &Fields<'a>) -> Result<DocumentRef<'a>> {
    fields.document("definition")?.ok_or_else(|| fields.missing("definition"))
}
