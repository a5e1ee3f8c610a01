//! Documents of one collection, read from the source and deleted from the target by `_id`.

use super::pair::Pair;
use crate::ToolError;
use crate::restore::outcome::write_errors;
use bunko_bson::key_string::{self, Direction};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Value, ValueRef, number};
use bunko_client::{ClientError, CommandError};
use std::collections::BTreeMap;

/// MongoDB's `CommandNotSupportedOnView`.
const NOT_SUPPORTED_ON_VIEW: i32 = 166;

/// A collection of both servers.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) database: String,
    pub(super) collection: String,
    /// Whether the source has the collection. If not, its documents count as deleted.
    pub(super) is_there: bool,
}

/// The documents of the source with these `_id`s, in their order, if they are in one reply; `None` if they are longer.
/// # Errors
/// The server's, or the connection's.
pub(super) fn read(
    pair: &mut Pair,
    place: &Place,
    ids: &[Value],
    concern: &DocumentBuf,
) -> Result<Option<Vec<DocumentBuf>>, ToolError> {
    if !place.is_there || ids.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let wanted: ArrayBuf = ids.iter().collect();
    let filter = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$in", &wanted));
    let find = DocumentBuf::new()
        .with("find", &place.collection)
        .with("filter", &filter)
        // One more than there can be, so that the server closes the cursor with its first reply.
        .with("batchSize", ids.len() as i64 + 1)
        .with("readConcern", concern);
    let reply = pair.source().run(&place.database, &find)?;
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let open = cursor.get("id").and_then(number::as_i64_exact).unwrap_or_default();
    if open != 0 {
        let cursors: ArrayBuf = [open].into_iter().collect();
        let kill = DocumentBuf::new().with("killCursors", &place.collection).with("cursors", &cursors);
        pair.source().run(&place.database, &kill)?;
        if ids.len() > 1 {
            return Ok(None);
        }
    }
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    let mut found: Vec<_> = batch.iter().filter_map(ValueRef::as_document).map(DocumentRef::to_owned).collect();
    let places: BTreeMap<_, _> = ids.iter().enumerate().map(|(number, id)| (key(id.as_ref()), number)).collect();
    found.sort_by_key(|document| id(document.as_ref()).and_then(|id| places.get(&key(id)).copied()));
    Ok(Some(found))
}

/// A key that is equal for equal `_id`s, also for numbers of different types.
pub(super) fn key(id: ValueRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    key_string::append(&mut key, id, Direction::Ascending);
    key
}

pub(super) fn id(document: DocumentRef<'_>) -> Option<ValueRef<'_>> {
    document.get("_id")
}

/// Deletes documents of the target. A view has none: it has taken the place of a collection whose drop is yet to come.
/// # Errors
/// The server's, or the connection's.
pub(super) fn delete<'v>(
    pair: &mut Pair,
    place: &Place,
    ids: impl Iterator<Item = ValueRef<'v>>,
) -> Result<(), ToolError> {
    let mut statements = Vec::new();
    for id in ids {
        statements.extend(DocumentBuf::new().with("q", &equal_to(id)).with("limit", 1_i32).into_bytes());
    }
    if statements.is_empty() {
        return Ok(());
    }
    let command = DocumentBuf::new().with("delete", &place.collection).with("ordered", false);
    let reply = match pair.target().write(&place.database, &command, ("deletes", &statements)) {
        Err(ToolError::Server { cause, .. }) if is_view(&cause) => return Ok(()),
        written => written?,
    };
    let mut refusals = write_errors(reply.as_ref()).into_iter().map(|(_, error)| CommandError::read(error));
    match refusals.find(|refusal| refusal.code != NOT_SUPPORTED_ON_VIEW) {
        Some(refusal) => Err(ToolError::server(format!("{}.{}", place.database, place.collection), refusal)),
        None => Ok(()),
    }
}

fn is_view(error: &ClientError) -> bool {
    matches!(error, ClientError::Command(refusal) if refusal.code == NOT_SUPPORTED_ON_VIEW)
}

/// The filter for this `_id`, even if the `_id` is a document with operators' names.
pub(super) fn equal_to(id: ValueRef<'_>) -> DocumentBuf {
    DocumentBuf::new().with("_id", &DocumentBuf::new().with("$eq", id))
}
