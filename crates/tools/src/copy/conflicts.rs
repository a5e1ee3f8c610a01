//! Documents that the target refuses, most often for a unique key that another document of the target still has.
//!
//! Both documents cannot have the key at the same time in the source, so one of the two states is old. All documents
//! that take part are removed and read anew, together, until the target takes them. The set only grows, and a
//! collection in which it does not help is copied anew.

use super::documents::{self, Place};
use super::facts::now;
use super::pair::Pair;
use super::{Copy, definitions, listing, majority_after};
use crate::restore::outcome::write_errors;
use crate::{ToolError, retry};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_client::CommandError;
use std::collections::HashSet;

/// Attempts after which the collection is copied anew.
const ATTEMPTS_MAX: u32 = 20;
/// Documents that may take part in one conflict, at most, before the collection is copied anew.
const DOCUMENTS_MAX: usize = 2000;

/// Gives documents that refuse each other their newest states.
/// # Errors
/// The servers', the connections', `Interrupted`; a refusal for another reason than a key.
pub(super) fn settle(copy: &Copy<'_>, pair: &mut Pair, place: &Place, mut ids: Vec<Value>) -> Result<(), ToolError> {
    for _ in 0..ATTEMPTS_MAX {
        retry::check(copy.interrupted)?;
        documents::delete(pair, place, ids.iter().map(Value::as_ref))?;
        let concern = majority_after(now(pair.source())?);
        let mut holders = Vec::new();
        let mut is_refused = false;
        // Eight at a time, because documents may be long.
        for some in ids.chunks(8) {
            for refusal in insert(pair, place, some, &concern)? {
                is_refused = true;
                holders.extend(self::holders(pair, place, refusal.as_ref())?);
            }
        }
        if !is_refused {
            return Ok(());
        }
        // A document that holds several of the keys takes part once: it would refuse itself.
        let mut known: HashSet<_> = ids.iter().map(|id| documents::key(id.as_ref())).collect();
        holders.retain(|holder| known.insert(documents::key(holder.as_ref())));
        ids.extend(holders);
        if ids.len() > DOCUMENTS_MAX {
            break;
        }
    }
    match listing::one(pair.source(), &place.database, &place.collection)? {
        Some(listed) => {
            copy.note(format!("{}: copied anew, because documents exclude each other", listed.namespace()));
            definitions::copy_anew(copy, pair, &listed)
        }
        // The source has dropped the collection: the change stream brings the drop.
        None => Ok(()),
    }
}

/// Inserts the newest states, and returns the errors of those that the target refuses for a key.
fn insert(pair: &mut Pair, place: &Place, ids: &[Value], concern: &DocumentBuf) -> Result<Vec<DocumentBuf>, ToolError> {
    let Some(found) = documents::read(pair, place, ids, concern)? else {
        let (left, right) = ids.split_at(ids.len() / 2);
        let mut refused = insert(pair, place, left, concern)?;
        refused.extend(insert(pair, place, right, concern)?);
        return Ok(refused);
    };
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let documents: Vec<u8> = found.into_iter().flat_map(DocumentBuf::into_bytes).collect();
    let command = pair.target().storing("insert", &place.collection);
    let reply = pair.target().write(&place.database, &command, ("documents", &documents))?;
    let mut refused = Vec::new();
    for (_, error) in write_errors(reply.as_ref()) {
        let refusal = CommandError::read(error);
        if refusal.code != CommandError::DUPLICATE_KEY {
            return Err(ToolError::server(format!("{}.{}", place.database, place.collection), refusal));
        }
        refused.push(error.to_owned());
    }
    Ok(refused)
}

/// The `_id`s of the target's documents that have the key in a unique index. Others must not be among them: they are
/// removed for a moment, and a copy that is killed then would not get them again, because they have no events.
fn holders(pair: &mut Pair, place: &Place, error: DocumentRef<'_>) -> Result<Vec<Value>, ToolError> {
    let document = |name| error.get(name).and_then(ValueRef::as_document);
    let (Some(pattern), Some(key)) = (document("keyPattern"), document("keyValue")) else { return Ok(Vec::new()) };
    let indexes = definitions::indexes(pair.target(), &place.database, &place.collection)?;
    let has_pattern = |index: DocumentRef<'_>| {
        let key = index.get("key").and_then(ValueRef::as_document);
        key.is_some_and(|key| key.as_bytes() == pattern.as_bytes())
    };
    let mut holders = Vec::new();
    for index in indexes.iter().map(DocumentBuf::as_ref).filter(|index| has_pattern(*index)) {
        let mut find = DocumentBuf::new()
            .with("find", &place.collection)
            .with("filter", &holding(index, key))
            .with("projection", &DocumentBuf::new().with("_id", 1_i32))
            .with("limit", DOCUMENTS_MAX as i64 + 1);
        if let Some(collation) = index.get("collation") {
            find.append("collation", collation);
        }
        let found = pair.target().list(&place.database, &find)?;
        holders.extend(found.iter().filter_map(|document| documents::id(document.as_ref())).map(ValueRef::to_value));
    }
    Ok(holders)
}

/// Selects the documents that have the key in that index.
fn holding(index: DocumentRef<'_>, key: DocumentRef<'_>) -> DocumentBuf {
    let (mut values, mut fields) = (DocumentBuf::new(), Vec::new());
    for field in key {
        values.append(field.name, &DocumentBuf::new().with("$eq", field.value));
        fields.push(DocumentBuf::new().with(field.name, &DocumentBuf::new().with("$exists", true)));
    }
    let mut conditions = vec![values];
    if let Some(partial) = index.get("partialFilterExpression").and_then(ValueRef::as_document) {
        conditions.push(partial.to_owned());
    }
    if matches!(index.get("sparse"), Some(ValueRef::Boolean(true))) {
        conditions.push(DocumentBuf::new().with("$or", &fields.iter().collect::<ArrayBuf>()));
    }
    DocumentBuf::new().with("$and", &conditions.iter().collect::<ArrayBuf>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    #[test]
    fn only_documents_in_the_index_hold_its_key() {
        let document = |json| parse_document(json).expect("JSON");
        let key = document(r#"{"a":null}"#);
        let held = |index| holding(document(index).as_ref(), key.as_ref());
        assert_eq!(held(r#"{"name":"a_1"}"#), document(r#"{"$and":[{"a":{"$eq":null}}]}"#));
        let partial = r#"{"sparse":true,"partialFilterExpression":{"b":1}}"#;
        let expected = r#"{"$and":[{"a":{"$eq":null}},{"b":1},{"$or":[{"a":{"$exists":true}}]}]}"#;
        assert_eq!(held(partial), document(expected));
    }
}
