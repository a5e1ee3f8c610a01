//! `applyOps`: applies oplog entries in their order, up to the first that fails.
//!
//! **Invariant:** entries that are applied twice in their order have the same effect as once: inserts replace, a delete
//! of a missing document does nothing, and it is not a failure that a collection or an index was created or dropped
//! before. It is a failure if the document of an update is missing, or the collection of an insert or an update.
//! Source: MongoDB manual, "applyOps"; the fields of oplog entries as `local.oplog.rs` shows them.

mod change;
mod definition;
mod delta;
mod documents;
mod entry;
mod excerpt;

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_authority::privileges::administration;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;
use bunko_request::facts::{Changes, CommandFacts, Databases, Secrets, WriteConcernUse};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_request::secret_names::is_of_users;
use bunko_session::Halt;
use documents::Documents;
use entry::{Entry, NamedCollection};
use std::sync::Arc;

pub(crate) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "applyOps",
        fields: &[
            field("allowAtomic", Kind::Own),
            field("alwaysUpsert", Kind::Own),
            field("bypassDocumentValidation", Kind::BooleanLike),
            field("count", Kind::Own),
            field("partialTxn", Kind::Own),
            field("preCondition", Kind::Own),
            field("prepare", Kind::Own),
        ],
        databases: Databases::Admin,
        changes: Changes::Other,
        write_concern: WriteConcernUse::Taken,
        secrets: Secrets::OfUsers(has_entry_of_users),
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(administration::everything),
    run,
    ..Command::PLAIN
};

/// Whether one of the entries may write documents of users.
fn has_entry_of_users(request: &Request<'_>) -> bool {
    request.argument().as_array().is_some_and(are_about_users)
}

/// Whether one of the entries is about users: by its namespace, or because it contains such entries.
fn are_about_users(entries: ArrayRef<'_>) -> bool {
    entries.iter().filter_map(ValueRef::as_document).any(|entry| {
        let inner = entry.get("o").and_then(ValueRef::as_document).and_then(|o| o.get(COMMAND.name)?.as_array());
        entry.get("ns").and_then(ValueRef::as_str).is_some_and(is_of_users) || inner.is_some_and(are_about_users)
    })
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    // `allowAtomic` allows an atomic run but does not require one, so it has no effect.
    if parse_options(invocation)? {
        invocation.operation().bypass_validation();
    }
    let argument = invocation.argument();
    let entries = argument.as_array().ok_or_else(|| invocation.mismatch("applyOps", argument, "type 'array'"))?;
    let entries = parse(entries)?;
    invocation.refuse_if_long(true)?;
    let mut applied = 0;
    match apply(invocation, &entries, &mut applied) {
        Ok(()) => {
            reply.extend(results(applied, None).as_ref());
            Ok(())
        }
        Err(Halt::Failed(failure)) => {
            let results = results(applied, Some(&failure));
            Err(failure.with_details(results.as_ref()).into())
        }
        Err(too_long) => Err(too_long),
    }
}

/// Whether to bypass validation. Refuses options that only oplog entries may have, and options that MongoDB has
/// removed.
/// # Errors
/// `TypeMismatch`; `BadValue` for `prepare`, 31056 for `partialTxn`, 31240 for `count`, 6711600 for `preCondition`,
/// 6711601 for `alwaysUpsert`.
fn parse_options(fields: &Fields<'_>) -> Result<bool> {
    let refused =
        |code, name: &str| Err(Failure::new(ErrorCode(code), format!("applyOps command cannot have '{name}' field")));
    if fields.field("prepare").is_some() {
        return refused(ErrorCode::BAD_VALUE.0, "prepare");
    }
    if fields.field("partialTxn").is_some() {
        return refused(31056, "partialTxn");
    }
    match fields.field("count") {
        None => {}
        Some(count) if number::as_f64(count).is_none() => {
            return Err(fields.mismatch("count", count, "type 'long'"));
        }
        Some(_) => return refused(31240, "count"),
    }
    if fields.field("preCondition").is_some() {
        let message = "The 'preCondition' field is not supported any more";
        return Err(Failure::new(ErrorCode(6_711_600), message));
    }
    match fields.field("alwaysUpsert") {
        None | Some(ValueRef::Null | ValueRef::Boolean(false)) => fields.boolean("bypassDocumentValidation", false),
        Some(ValueRef::Boolean(true)) => {
            Err(Failure::new(ErrorCode(6_711_601), "The 'alwaysUpsert' field is not supported any more"))
        }
        Some(other) => Err(fields.mismatch("alwaysUpsert", other, "type 'bool'")),
    }
}

/// The number of entries that were tried, and the outcome of each. A failed entry is the last one.
fn results(applied: usize, failure: Option<&Failure>) -> DocumentBuf {
    let results: ArrayBuf = std::iter::repeat_n(true, applied).chain(failure.map(|_| false)).collect();
    DocumentBuf::new().with("applied", results.count() as i32).with("results", &results)
}

/// Reads all entries before any of them is applied.
fn parse(entries: ArrayRef<'_>) -> Result<Vec<Entry<'_>>> {
    entries
        .iter()
        .enumerate()
        .map(|(index, entry)| match entry {
            ValueRef::Document(entry) => Entry::parse(entry),
            other => Err(Failure::wrong_type(format_args!("applyOps.applyOps.{index}"), other, "type 'object'")),
        })
        .collect()
}

/// Applies entries in their order, and counts the applied ones in `applied`.
fn apply(invocation: &mut Invocation<'_>, entries: &[Entry<'_>], applied: &mut usize) -> Result<(), Halt> {
    let operation = Arc::clone(invocation.operation());
    while let Some(entry) = entries.get(*applied) {
        operation.check()?;
        let service = invocation.service;
        let mut documents = Documents::new(&service.catalog, &service.counters, &operation);
        let outcome = match entry {
            Entry::Insert { place, .. } => {
                let (count, failure) = documents.insert(place, &inserts_into(place, &entries[*applied..]));
                *applied += count;
                invocation.note_written(documents.written);
                failure.map_or(Ok(()), Err)?;
                continue;
            }
            Entry::Update { place, id, change, upsert } => documents.update(place, *id, change, *upsert),
            Entry::Delete { place, id } => documents.delete(place, *id),
            Entry::Command { database, command, uuid } => {
                apply_command(invocation, database, *command, *uuid)?;
                Ok(())
            }
            Entry::Nothing => Ok(()),
        };
        invocation.note_written(documents.written);
        outcome?;
        *applied += 1;
    }
    Ok(())
}

/// The documents of the leading entries that all insert into one collection.
fn inserts_into<'a>(first: &NamedCollection, entries: &[Entry<'a>]) -> Vec<DocumentRef<'a>> {
    let document = |entry: &Entry<'a>| match entry {
        Entry::Insert { place, document } if place == first => Some(*document),
        _ => None,
    };
    entries.iter().map_while(document).collect()
}

/// Applies a command entry. It may contain entries; BSON limits how deep.
fn apply_command(
    invocation: &mut Invocation<'_>,
    database: &str,
    command: DocumentRef<'_>,
    uuid: Option<[u8; 16]>,
) -> Result<(), Halt> {
    let Some(ValueRef::Array(entries)) = command.get("applyOps") else {
        return definition::apply(invocation, database, command, uuid);
    };
    if let Some(other) = command.iter().find(|field| field.name != "applyOps") {
        // This entry is part of a transaction, or of a prepared one. Whether it is applied depends on a later entry.
        let message = format!("applyOps does not support '{}' beside an inner applyOps", other.name);
        return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message).into());
    }
    apply(invocation, &parse(entries)?, &mut 0)
}
