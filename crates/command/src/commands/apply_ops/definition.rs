//! Oplog entries that change collections and indexes. Each is run as the command that it records, after fields that the
//! oplog writes differently are translated.

use super::super::{coll_mod, create, create_indexes, drop, drop_database, drop_indexes, rename_collection};
use super::documents::find_collection;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;
use bunko_session::Halt;

/// Runs one such entry.
/// # Errors
/// Errors of the command, except those that mean that the entry is applied already; `CommandNotSupported` for commands
/// that [`command_of`] does not know.
pub(super) fn apply(
    invocation: &mut Invocation<'_>,
    database: &str,
    object: DocumentRef<'_>,
    uuid: Option<[u8; 16]>,
) -> Result<(), Halt> {
    let first = object.first().ok_or_else(|| Failure::failed_to_parse("a command in an oplog entry is empty"))?;
    let command = command_of(first.name)?;
    let Some(body) = body_of(&invocation.service.catalog, database, command.name, object, uuid)? else { return Ok(()) };
    let database = if command.name == "renameCollection" { "admin" } else { database };
    let request = Request::new(database, body.as_ref(), None);
    let mut inner = invocation.inner(command, request)?;
    let outcome = if command.name == "create" {
        create::create(&mut inner, uuid).map_err(Halt::from)
    } else {
        // The reply of the command is discarded.
        (command.run)(&mut inner, &mut Writer::new(&mut Vec::new()))
    };
    let written = inner.written();
    drop(inner);
    invocation.note_written(written);
    match outcome {
        Err(Halt::Failed(failure))
            if is_done(&invocation.service.catalog, database, command, object, uuid, &failure) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

fn command_of(name: &str) -> Result<&'static Command> {
    Ok(match name {
        "create" => &create::COMMAND,
        "drop" => &drop::COMMAND,
        "dropDatabase" => &drop_database::COMMAND,
        "renameCollection" => &rename_collection::COMMAND,
        "createIndexes" => &create_indexes::COMMAND,
        "dropIndexes" | "deleteIndexes" => &drop_indexes::COMMAND,
        "collMod" => &coll_mod::COMMAND,
        _ => {
            let message = format!("applyOps does not support the command '{name}'");
            return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
        }
    })
}

/// The command as a client would send it; `None` if its collection does not exist (any more).
fn body_of(
    catalog: &Catalog,
    database: &str,
    command: &'static str,
    object: DocumentRef<'_>,
    uuid: Option<[u8; 16]>,
) -> Result<Option<DocumentBuf>> {
    let first = object.first().map_or(ValueRef::Null, |first| first.value);
    let rest = object.iter().skip(1);
    let mut body = DocumentBuf::new();
    match (command, first) {
        ("create" | "dropDatabase", _) | (_, ValueRef::Null) => body.extend(object),
        ("renameCollection", ValueRef::String(from)) => {
            let from = Namespace::parse(from)?;
            let Some(source) = find_collection(catalog, &from, uuid) else { return Ok(None) };
            body.append(command, source.namespace().as_str());
            for field in rest {
                match (field.name, field.value) {
                    // Bunko has no temporary collections.
                    ("stayTemp", _) => {}
                    // The UUID of the dropped target.
                    ("dropTarget", ValueRef::Binary { .. }) => {
                        body.append("dropTarget", true);
                    }
                    (name, value) => {
                        body.append(name, value);
                    }
                }
            }
            &mut body
        }
        (_, ValueRef::String(collection)) => {
            let Some(collection) = find_collection(catalog, &Namespace::new(database, collection)?, uuid) else {
                return Ok(None);
            };
            body.append(command, collection.namespace().collection());
            if command == "createIndexes" && object.get("indexes").is_none() {
                let mut index = DocumentBuf::new();
                rest.for_each(|field| {
                    index.append(field.name, field.value);
                });
                body.append("indexes", &[&index].into_iter().collect::<ArrayBuf>())
            } else {
                rest.for_each(|field| {
                    body.append(field.name, field.value);
                });
                &mut body
            }
        }
        _ => body.extend(object),
    };
    Ok(Some(body))
}

/// Whether a failure means that this entry, or a later one, was applied before.
fn is_done(
    catalog: &Catalog,
    database: &str,
    command: &Command,
    object: DocumentRef<'_>,
    uuid: Option<[u8; 16]>,
    failure: &Failure,
) -> bool {
    match (command.name, failure.code()) {
        ("create", ErrorCode::NAMESPACE_EXISTS) => {
            let name = object.first().and_then(|first| first.value.as_str()).unwrap_or_default();
            let existing = Namespace::new(database, name).ok().and_then(|namespace| catalog.collection(&namespace));
            // A collection of that name with another UUID is a real conflict.
            existing.is_some_and(|existing| uuid.is_none_or(|uuid| existing.uuid == uuid))
        }
        // The collection or index was dropped after it was looked up.
        (_, ErrorCode::NAMESPACE_NOT_FOUND) | ("dropIndexes" | "collMod", ErrorCode::INDEX_NOT_FOUND) => true,
        _ => false,
    }
}
