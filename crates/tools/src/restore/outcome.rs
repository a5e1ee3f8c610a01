//! The server's results for the documents of one command.

use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_client::{CommandError, check_reply};

/// A reply to an insert.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Documents that were inserted.
    pub(crate) inserted: u64,
    pub(crate) write_errors: Vec<WriteError>,
    /// The documents are written, but less durably than was asked.
    pub(crate) concern_error: Option<CommandError>,
}

/// One document that was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WriteError {
    /// Number of the document in the batch.
    pub(crate) number: usize,
    pub(crate) error: CommandError,
    /// Whether a document with the same `_id` exists.
    pub(crate) is_known_id: bool,
}

impl Outcome {
    /// Reads a reply.
    /// # Errors
    /// The server refused the whole command.
    pub(crate) fn read(reply: DocumentRef<'_>) -> Result<Self, CommandError> {
        let is_ok = reply.get("ok").and_then(number::as_f64) == Some(1.0);
        if !is_ok {
            return Err(check_reply(reply).err().unwrap_or_else(|| CommandError::read(reply)));
        }
        let write_errors = write_errors(reply).into_iter().map(|(number, error)| WriteError::read(number, error));
        let mut outcome = Self { write_errors: write_errors.collect(), ..Self::default() };
        for field in reply {
            match (field.name, field.value) {
                ("n", value) => outcome.inserted = number::truncate_to_i64(value).unwrap_or(0).max(0) as u64,
                ("writeConcernError", ValueRef::Document(error)) => {
                    outcome.concern_error = Some(CommandError::read(error));
                }
                _ => {}
            }
        }
        Ok(outcome)
    }
}

/// The errors of a reply's documents or statements: the number of each, and the error as the server tells it.
pub(crate) fn write_errors(reply: DocumentRef<'_>) -> Vec<(usize, DocumentRef<'_>)> {
    let errors = reply.get("writeErrors").and_then(ValueRef::as_array);
    let errors = errors.iter().flat_map(|errors| errors.iter()).filter_map(ValueRef::as_document);
    let number = |error: DocumentRef<'_>| error.get("index").and_then(number::truncate_to_i64).unwrap_or(0).max(0);
    errors.map(|error| (number(error) as usize, error)).collect()
}

impl WriteError {
    fn read(number: usize, document: DocumentRef<'_>) -> Self {
        let error = CommandError::read(document);
        // Newer servers name the key; older ones name only the index, in the message.
        let is_id = match document.get("keyPattern").and_then(ValueRef::as_document) {
            Some(key) => key.count() == 1 && key.get("_id").is_some(),
            None => error.message.contains("index: _id_ "),
        };
        Self { number, is_known_id: error.code == CommandError::DUPLICATE_KEY && is_id, error }
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
