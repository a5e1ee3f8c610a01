//! `createSearchIndexes`: creates search indexes on a collection, either all or none.

use super::{NAME_USUAL, collection};
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::stored_document::Stamps;
use bunko_catalog::{SEARCH_INDEXES_MAX, SearchIndex};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::facts::CommandFacts;
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_search::SearchIndexDefinition;
use bunko_session::Halt;
use std::sync::Arc;

pub(in crate::commands) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "createSearchIndexes",
        fields: &[field("indexes", Kind::Own)],
        sequences: &["indexes"],
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::CreateSearchIndexes),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let asked = parse(invocation)?;
    let asked = asked.into_iter().enumerate();
    let asked = asked.map(|(position, document)| read(invocation, position, document)).collect::<Result<Vec<_>>>()?;
    let collection = collection(invocation, &namespace)?;
    let catalog = &invocation.service.catalog;
    let written = catalog.change_search_indexes(&collection, invocation, &mut |before| {
        let mut after = before.to_vec();
        for index in &asked {
            if after.iter().any(|present| present.name == index.name) {
                let message = format!("Index {} already exists", index.name);
                return Err(Failure::new(ErrorCode::INDEX_ALREADY_EXISTS, message));
            }
            after.push(Arc::clone(index));
        }
        if after.len() > SEARCH_INDEXES_MAX {
            let message = format!("a collection has {SEARCH_INDEXES_MAX} search indexes at most");
            return Err(Failure::new(ErrorCode::CANNOT_CREATE_INDEX, message));
        }
        Ok(after)
    })?;
    invocation.note_written(Some(written));
    let shown = asked
        .iter()
        .map(|index| DocumentBuf::new().with("id", index.id.to_string().as_str()).with("name", index.name.as_str()));
    let shown = shown.collect::<Vec<_>>().iter().collect::<ArrayBuf>();
    reply.append("indexesCreated", &shown);
    Ok(())
}

/// The indexes to create, at least one.
fn parse<'a>(fields: &Fields<'a>) -> Result<Vec<DocumentRef<'a>>> {
    let asked = fields.documents("indexes")?;
    if asked.is_empty() {
        return Err(Failure::bad_value("\"userCommand.indexes\" cannot be empty"));
    }
    Ok(asked)
}

fn read(invocation: &Invocation<'_>, position: usize, document: DocumentRef<'_>) -> Result<Arc<SearchIndex>> {
    let (mut name, mut kind, mut sent) = (NAME_USUAL, "search", None);
    for field in document {
        let path = format!("indexes.{}", field.name);
        match (field.name, field.value) {
            ("name" | "type", ValueRef::Null) => {}
            ("name", ValueRef::String(found)) => name = found,
            ("type", ValueRef::String(found)) => kind = found,
            ("definition", ValueRef::Document(found)) => sent = Some(found),
            ("name" | "type", other) => return Err(invocation.mismatch(&path, other, "type 'string'")),
            ("definition", other) => return Err(invocation.mismatch(&path, other, "type 'object'")),
            _ => return Err(Failure::unknown_field(format_args!("createSearchIndexes.{path}"))),
        }
    }
    let sent = sent.ok_or_else(|| Failure::missing_field("createSearchIndexes.indexes.definition"))?;
    let path = format!("userCommand.indexes[{position}]");
    if name.is_empty() {
        return Err(Failure::bad_value(format!("\"{path}.name\" cannot be empty")));
    }
    let definition = SearchIndexDefinition::parse(kind, sent, &path)?;
    let world = &invocation.service.world;
    Ok(Arc::new(SearchIndex {
        id: world.object_id(),
        name: name.to_owned(),
        version: 0,
        created_at_ms: world.now_ms(),
        sent: sent.to_owned(),
        definition,
    }))
}
