//! Builds an index on the existing documents.

use super::{Answer, Assignment, Effect, Operation, Requests};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::Dataset;
use serde::{Deserialize, Serialize};

/// Settings of the operation `index`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Index {
    /// Fields with directions: `value1,value2:-1`.
    pub keys: String,
}

/// Parses a key pattern such as `field,other:-1`.
/// # Errors
/// A field without a name, or a direction other than 1 and -1.
pub(crate) fn key_pattern(keys: &str) -> Result<DocumentBuf, String> {
    let mut pattern = DocumentBuf::new();
    for key in keys.split(',') {
        let (field, direction) = key.trim().split_once(':').unwrap_or((key.trim(), "1"));
        let direction = match direction.trim() {
            "1" => 1_i32,
            "-1" => -1,
            _ => return Err(format!("index '{keys}': the direction '{direction}' is neither 1 nor -1")),
        };
        if field.is_empty() {
            return Err(format!("index '{keys}': a field has no name"));
        }
        pattern.append(field, direction);
    }
    Ok(pattern)
}

/// Checks that the documents have all fields of these keys.
/// # Errors
/// As [`key_pattern`]; a field that the documents lack.
pub(crate) fn check_keys(dataset: &Dataset, keys: &str) -> Result<(), String> {
    let pattern = key_pattern(keys)?;
    let mut fields = pattern.as_ref().iter().map(|element| element.name);
    fields.try_for_each(|field| super::check_field(dataset, &format!("index '{keys}'"), field))
}

/// The command that builds an index.
pub(crate) fn create_index(collection: &str, keys: &str) -> Result<DocumentBuf, String> {
    let name = keys.split(',').map(|key| key.trim().replace(':', "_")).collect::<Vec<_>>().join("_");
    let index = DocumentBuf::new().with("key", &key_pattern(keys)?).with("name", name.as_str());
    Ok(DocumentBuf::new()
        .with("createIndexes", collection)
        .with("indexes", &[&index].into_iter().collect::<ArrayBuf>()))
}

impl Operation for Index {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Builds]
    }

    fn natural_requests(&self, _documents: u64, _slots: u64) -> Option<u64> {
        Some(1)
    }

    fn check(&self, dataset: &Dataset) -> Result<(), String> {
        check_keys(dataset, &self.keys)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let command = create_index(assignment.collection, &self.keys)?.with("$db", assignment.database);
        Ok(Box::new(IndexRequests { command, documents: assignment.insertions.readable_count() }))
    }
}

struct IndexRequests {
    command: DocumentBuf,
    documents: u64,
}

impl Requests for IndexRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, self.command.as_ref());
        frame.finish().expect("a short command");
        Some(0)
    }

    fn on_reply(&mut self, _tag: u64, _reply: Reply<'_>) -> Result<Answer, String> {
        Ok(Answer::Done { documents: self.documents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_patterns_are_read() {
        let shown = |keys: &str| key_pattern(keys).map(|pattern| format!("{pattern:?}"));
        assert_eq!(shown("a,b:-1").as_deref(), Ok(r#"{"a": Int32(1), "b": Int32(-1)}"#));
        assert!(shown("a:2").is_err_and(|error| error.contains("'2'")));
        assert!(shown("a,").is_err());
    }
}
