//! Writes settings of the server itself, as documents in its own collections.

use crate::command_entry::Command;
use crate::commands::{delete, update};
use crate::invocation::Invocation;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;
use bunko_session::Halt;

/// Stores a document under its `_id`, in place of an older one.
/// # Errors
/// Errors of an update.
pub(crate) fn keep(
    invocation: &mut Invocation<'_>,
    database: &str,
    collection: &str,
    document: &DocumentBuf,
) -> Result<(), Halt> {
    write(invocation, &update::COMMAND, database, &replacement(collection, document)).map(drop)
}

/// The command that stores a document under its `_id`, in place of an older one.
pub(crate) fn replacement(collection: &str, document: &DocumentBuf) -> DocumentBuf {
    let id = document.as_ref().get("_id").unwrap_or(ValueRef::Null);
    let statement =
        DocumentBuf::new().with("q", &DocumentBuf::new().with("_id", id)).with("u", document).with("upsert", true);
    let updates: ArrayBuf = [&statement].into_iter().collect();
    DocumentBuf::new().with("update", collection).with("updates", &updates)
}

/// Deletes documents of the server's own, and returns how many.
/// # Errors
/// Errors of a delete.
pub(crate) fn delete(
    invocation: &mut Invocation<'_>,
    database: &str,
    collection: &str,
    filter: &DocumentBuf,
) -> Result<i64, Halt> {
    let statement = DocumentBuf::new().with("q", filter).with("limit", 0);
    let deletes: ArrayBuf = [&statement].into_iter().collect();
    let body = DocumentBuf::new().with("delete", collection).with("deletes", &deletes);
    let reply = write(invocation, &delete::COMMAND, database, &body)?;
    Ok(reply.as_ref().get("n").and_then(number::as_i64_exact).unwrap_or_default())
}

/// Runs a writing command as a part of the running one. Returns its reply.
/// # Errors
/// Errors of the command, including those that it reports as write errors.
pub(crate) fn write(
    invocation: &mut Invocation<'_>,
    command: &'static Command,
    database: &str,
    body: &DocumentBuf,
) -> Result<DocumentBuf, Halt> {
    let mut inner = invocation.inner(command, Request::new(database, body.as_ref(), None))?;
    let mut reply = Vec::new();
    let mut writer = Writer::new(&mut reply);
    (command.run)(&mut inner, &mut writer)?;
    writer.end();
    let written = inner.written();
    drop(inner);
    invocation.note_written(written);
    if database == bunko_authority::DATABASE {
        // The outer command may run on another database.
        invocation.service.authority.access.note_change();
    }
    let refused = DocumentRef::trusted(&reply).get("writeErrors");
    match refused.and_then(ValueRef::as_array).and_then(|errors| errors.iter().next()).and_then(ValueRef::as_document) {
        None => Ok(DocumentBuf::from_trusted(reply)),
        Some(error) => {
            let message = error.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default();
            let code = match error.get("code") {
                Some(ValueRef::Int32(code)) => ErrorCode(code),
                _ => ErrorCode::UNKNOWN_ERROR,
            };
            Err(Failure::new(code, message.to_owned()).into())
        }
    }
}
