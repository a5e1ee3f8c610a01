//! Writes settings of the server itself, as documents in its own collections.

use crate::commands;
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;

/// Stores a document under its `_id`, in place of an older one.
/// # Errors
/// Errors of an update.
pub(crate) fn keep(
    invocation: &mut Invocation<'_>,
    database: &str,
    collection: &str,
    document: &DocumentBuf,
) -> Result<(), Halt> {
    let id = document.as_ref().get("_id").unwrap_or(ValueRef::Null);
    let statement =
        DocumentBuf::new().with("q", &DocumentBuf::new().with("_id", id)).with("u", document).with("upsert", true);
    let updates: ArrayBuf = [&statement].into_iter().collect();
    let body = DocumentBuf::new().with("update", collection).with("updates", &updates);
    write(invocation, database, &body).map(drop)
}

/// Runs a writing command as a part of the running one. Returns its reply.
/// # Errors
/// Errors of the command, including those that it reports as write errors.
pub(crate) fn write(invocation: &mut Invocation<'_>, database: &str, body: &DocumentBuf) -> Result<DocumentBuf, Halt> {
    let name = body.as_ref().first().map(|first| first.name).unwrap_or_default();
    let command = commands::find(name).expect("a command of the table");
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
