//! `dropIndexes`: drops indexes by name or by key pattern, or all but the one on `_id`.

use crate::authorization::Privileges;
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use crate::target::Target;
use bunko_access::Action;
use bunko_authority::audit::{AuditEvent, Event};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, DocumentRef, Type, ValueRef, Writer, order};
use bunko_catalog::Collection;
use bunko_errors::{ErrorCode, Failure};
use bunko_request::Request;
use bunko_request::facts::{Changes, CommandFacts, Queueing, Stability, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::statement::required;
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "dropIndexes",
        aliases: &["deleteIndexes"],
        fields: &[
            field("index", Kind::OneOf(&[Type::String, Type::Array, Type::Document])),
            field("collectionUUID", Kind::Uuid),
        ],
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::DropIndex),
    audit: AuditEvent::Of(events),
    run,
};

fn events(request: &Request<'_>) -> Vec<Event> {
    let mut event = Event::of_collection("dropIndex", request);
    if let Some(index) = request.body.get("index") {
        event.param.append("indexName", index);
    }
    vec![event]
}

/// The indexes to drop, and the expected UUID of the collection.
fn parse<'a>(fields: &Fields<'a>) -> Result<(ValueRef<'a>, Option<[u8; 16]>), Failure> {
    Ok((required(fields, "index")?, collection_uuid::parse(fields)?))
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let (wanted, uuid) = parse(invocation)?;
    collection_uuid::check(&invocation.service.catalog, &namespace, uuid)?;
    let target = Target::of(&invocation.service.catalog, invocation, &namespace)?;
    let series = target.series().map(|series| series.options.clone());
    let collection = target
        .into_stored(&invocation.service.catalog, &namespace)?
        .ok_or_else(|| Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, format!("ns not found {namespace}")))?;
    let catalog = &invocation.service.catalog;
    let is_all = wanted.as_str() == Some("*");
    let dropped = match wanted {
        ValueRef::String("*") => catalog.drop_all_indexes(&collection, invocation)?,
        ValueRef::String(name) => catalog.drop_indexes(&collection, &[name], invocation)?,
        ValueRef::Document(key) => {
            let name = match &series {
                Some(series) => {
                    let key = bunko_series::bucket_key(key, series)?;
                    name_of(&collection, key.as_ref())?
                }
                None => name_of(&collection, key)?,
            };
            catalog.drop_indexes(&collection, &[&name], invocation)?
        }
        ValueRef::Array(names) => match read_names(names)?.as_slice() {
            ["*"] => catalog.drop_all_indexes(&collection, invocation)?,
            names => catalog.drop_indexes(&collection, names, invocation)?,
        },
        other => {
            return Err(invocation.mismatch("index", other, "types '[string, array, object]'").into());
        }
    };
    invocation.note_written(dropped.lsn);
    // The `_id` index of the buckets is not an index of the time series.
    let hidden = usize::from(series.is_some());
    reply.append("nIndexesWas", (dropped.before - hidden) as i32);
    if is_all {
        reply.append("msg", "non-_id indexes dropped for collection");
    }
    Ok(())
}

fn name_of(collection: &Collection, key: DocumentRef<'_>) -> Result<String, Failure> {
    let key = ValueRef::Document(key);
    let indexes = collection.indexes();
    let mut found = indexes.iter().filter(|index| order::equal(ValueRef::Document(index.key_pattern()), key));
    match (found.next(), found.next()) {
        (None, _) => {
            Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("can't find index with key: {}", ValueText(key))))
        }
        (Some(index), None) => Ok(index.name.clone()),
        (Some(one), Some(other)) => Err(Failure::new(
            ErrorCode::AMBIGUOUS_INDEX_KEY_PATTERN,
            format!(
                "{} indexes found for key: {}, identify by name instead. Conflicting indexes: {}, {}",
                2 + found.count(),
                ValueText(key),
                ValueText(ValueRef::Document(one.document.as_ref())),
                ValueText(ValueRef::Document(other.document.as_ref()))
            ),
        )),
    }
}

fn read_names(names: ArrayRef<'_>) -> Result<Vec<&str>, Failure> {
    names
        .iter()
        .enumerate()
        .map(|(position, value)| {
            value.as_str().ok_or_else(|| {
                Failure::wrong_type(format_args!("dropIndexes.index.{position}"), value, "type 'string'")
            })
        })
        .collect()
}
