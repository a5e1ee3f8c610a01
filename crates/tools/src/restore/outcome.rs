//! The server's results for the documents of one command.

use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_client::{CommandError, check_reply};

/// MongoDB's `DuplicateKey`.
const DUPLICATE_KEY: i32 = 11000;

/// A reply to an insert.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Documents that were inserted.
    pub(super) inserted: u64,
    pub(super) write_errors: Vec<WriteError>,
    /// The documents are written, but less durably than was asked.
    pub(super) concern_error: Option<CommandError>,
}

/// One document that was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WriteError {
    /// Its number in the batch.
    pub(super) number: usize,
    pub(super) error: CommandError,
    /// Whether a document with the same `_id` exists.
    pub(super) is_known_id: bool,
}

impl Outcome {
    /// Reads a reply.
    /// # Errors
    /// The server refused the whole command.
    pub(super) fn read(reply: DocumentRef<'_>) -> Result<Self, CommandError> {
        let is_ok = reply.get("ok").and_then(number::as_f64) == Some(1.0);
        if !is_ok {
            return Err(check_reply(reply).err().unwrap_or_else(|| CommandError::read(reply)));
        }
        let mut outcome = Self::default();
        for field in reply {
            match (field.name, field.value) {
                ("n", value) => outcome.inserted = number::truncate_to_i64(value).unwrap_or(0).max(0) as u64,
                ("writeErrors", ValueRef::Array(errors)) => {
                    outcome.write_errors =
                        errors.iter().filter_map(ValueRef::as_document).map(WriteError::read).collect();
                }
                ("writeConcernError", ValueRef::Document(error)) => {
                    outcome.concern_error = Some(CommandError::read(error));
                }
                _ => {}
            }
        }
        Ok(outcome)
    }
}

impl WriteError {
    fn read(document: DocumentRef<'_>) -> Self {
        let error = CommandError::read(document);
        let index = document.get("index").and_then(number::truncate_to_i64).unwrap_or(0);
        // Newer servers name the key; older ones name only the index, in the message.
        let is_id = match document.get("keyPattern").and_then(ValueRef::as_document) {
            Some(key) => key.count() == 1 && key.get("_id").is_some(),
            None => error.message.contains("index: _id_ "),
        };
        Self { number: index.max(0) as usize, is_known_id: error.code == DUPLICATE_KEY && is_id, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    fn read(json: &str) -> Result<Outcome, CommandError> {
        Outcome::read(parse_document(json).expect("JSON").as_ref())
    }

    #[test]
    fn refusals_are_told_apart() {
        let outcome = read(
            r#"{"n": 2, "ok": 1, "writeConcernError": {"code": 64, "errmsg": "late"}, "writeErrors": [
                {"index": 1, "code": 11000, "errmsg": "E11000 duplicate key error collection: a.b index: _id_ dup key: {}"},
                {"index": 2, "code": 11000, "errmsg": "x", "keyPattern": {"_id": 1}},
                {"index": 3, "code": 11000, "errmsg": "index: _id_ ", "keyPattern": {"a": 1}},
                {"index": 4, "code": 121, "errmsg": "index: _id_ "}]}"#,
        )
        .expect("ok");
        let known: Vec<_> = outcome.write_errors.iter().map(|error| (error.number, error.is_known_id)).collect();
        assert_eq!(known, [(1, true), (2, true), (3, false), (4, false)]);
        assert_eq!((outcome.inserted, outcome.concern_error.map(|error| error.code)), (2, Some(64)));
        assert_eq!(read(r#"{"ok": 0, "code": 13, "errmsg": "no"}"#).map_err(|error| error.code), Err(13));
        assert!(read("{}").is_err());
    }
}
