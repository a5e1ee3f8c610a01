//! The commands that carry an import's documents.

use super::options::{ImportOptions, Mode};
use crate::restore::Validation;
use bunko_bson::{DocumentBuf, DocumentRef, ObjectId, ValueRef, Writer};
use bunko_client::Acknowledgement;

/// Bytes of one command's documents, unless one document is longer.
pub(super) const BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Documents in one command.
/// Source: MongoDB limits, "Write Command Batch Limit Size".
pub(super) const BATCH_DOCUMENTS: usize = 100_000;

/// A kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Insert,
    Update,
    Delete,
}

impl Form {
    /// The name of the command, and of the sequence of its documents.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Insert => ("insert", "documents"),
            Self::Update => ("update", "updates"),
            Self::Delete => ("delete", "deletes"),
        }
    }

    /// The name of the sequence that carries the writes.
    pub(super) fn sequence(self) -> &'static str {
        self.names().1
    }

    /// The command without its writes.
    pub(super) fn command(self, options: &ImportOptions) -> DocumentBuf {
        let mut concern = options.write_concern.clone();
        if options.resume_file.is_some() {
            // Writes are journaled, because the state file may record only writes that survive a crash of the server.
            concern.journal = Some(true);
            if !concern.expects_reply() {
                concern.w = Acknowledgement::Members(1);
            }
        }
        let mut command = DocumentBuf::new()
            .with(self.names().0, &options.collection)
            .with("ordered", options.stops_on_error())
            .with("writeConcern", &concern.to_document());
        if options.validation == Validation::Bypass {
            command.append("bypassDocumentValidation", true);
        }
        command
    }
}

/// Puts the write for the document at `start` of `batch` in that document's place. `None`, and no write, for a deletion
/// whose document has none of the key fields.
pub(super) fn put_write(batch: &mut Vec<u8>, start: usize, options: &ImportOptions, id: ObjectId) -> Option<Form> {
    if options.mode == Mode::Insert {
        put_id(batch, start, id);
        return Some(Form::Insert);
    }
    let document = batch.split_off(start);
    let document = DocumentRef::trusted(&document);
    match (key(document, &options.key_fields), options.mode) {
        (None, Mode::Delete) => None,
        // As by mongoimport: a document without key fields is inserted.
        (None, _) => {
            batch.extend_from_slice(document.as_bytes());
            put_id(batch, start, id);
            Some(Form::Insert)
        }
        (Some(key), Mode::Delete) => {
            Writer::new(batch).append("q", &key).append("limit", 1_i32).end();
            Some(Form::Delete)
        }
        (Some(key), mode) => {
            let mut write = Writer::new(batch);
            write.append("q", &key);
            if mode == Mode::Merge {
                write.begin_document("u").append("$set", ValueRef::Document(document)).end();
            } else {
                write.append("u", ValueRef::Document(document));
            }
            write.append("upsert", true).end();
            Some(Form::Update)
        }
    }
}

/// The filter by the key fields; `None` if the document has a value in none of them. As by mongoimport, a field that the
/// document lacks beside others is looked for as null.
fn key(document: DocumentRef<'_>, fields: &[String]) -> Option<DocumentBuf> {
    let (mut key, mut has_value) = (DocumentBuf::new(), false);
    for path in fields {
        let value = value_at(document, path).unwrap_or(ValueRef::Null);
        has_value |= !matches!(value, ValueRef::Null);
        key.append(path, &DocumentBuf::new().with("$eq", value));
    }
    has_value.then_some(key)
}

fn value_at<'d>(document: DocumentRef<'d>, path: &str) -> Option<ValueRef<'d>> {
    let mut names = path.split('.');
    let first = document.get(names.next()?)?;
    names.try_fold(first, |value, name| value.as_document()?.get(name))
}

/// Puts `_id` in front, where the server keeps it; a document that has none gets this one.
fn put_id(batch: &mut Vec<u8>, start: usize, id: ObjectId) {
    const ID_BYTES: usize = 1 + 4 + 12;
    let document = DocumentRef::trusted(&batch[start..]);
    if document.first().is_some_and(|first| first.name == "_id") {
        return;
    }
    if let Some(id) = document.get("_id") {
        let mut sorted = DocumentBuf::new().with("_id", id);
        for element in document.iter().filter(|element| element.name != "_id") {
            sorted.append(element.name, element.value);
        }
        batch.truncate(start);
        batch.extend_from_slice(sorted.as_ref().as_bytes());
        return;
    }
    let end = batch.len();
    batch.resize(end + ID_BYTES, 0);
    batch.copy_within(start + 4..end, start + 4 + ID_BYTES);
    let element = &mut batch[start + 4..start + 4 + ID_BYTES];
    element[..5].copy_from_slice(b"\x07_id\0");
    element[5..].copy_from_slice(&id.0);
    let length = (end + ID_BYTES - start) as u32;
    batch[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tests::options;
    use bunko_bson::extended_json::{parse_document, to_relaxed};

    fn shown(mode: Mode, fields: &[&str], json: &str) -> String {
        let key_fields = fields.iter().map(|&field| field.to_owned()).collect();
        let options = ImportOptions { mode, key_fields, ..options("") };
        let mut batch = b"before".to_vec();
        batch.extend(parse_document(json).expect("JSON").into_bytes());
        let form = put_write(&mut batch, 6, &options, ObjectId([7; 12]));
        if batch.len() == 6 {
            return format!("{form:?}");
        }
        let document = DocumentRef::parse(&batch[6..]).expect("well formed");
        format!("{form:?} {}", to_relaxed(ValueRef::Document(document)))
    }

    #[test]
    fn each_mode_has_its_write() {
        let id = r#"{"$oid":"070707070707070707070707"}"#;
        assert_eq!(shown(Mode::Insert, &["_id"], "{\"a\":1}"), format!("Some(Insert) {{\"_id\":{id},\"a\":1}}"));
        assert_eq!(shown(Mode::Insert, &["_id"], "{\"a\":1,\"_id\":2}"), "Some(Insert) {\"_id\":2,\"a\":1}");
        let upsert = "Some(Update) {\"q\":{\"a.b\":{\"$eq\":1}},\"u\":{\"a\":{\"b\":1}},\"upsert\":true}";
        assert_eq!(shown(Mode::Upsert, &["a.b"], "{\"a\":{\"b\":1}}"), upsert);
        let merge = "Some(Update) {\"q\":{\"_id\":{\"$eq\":1}},\"u\":{\"$set\":{\"_id\":1,\"c\":2}},\"upsert\":true}";
        assert_eq!(shown(Mode::Merge, &["_id"], "{\"_id\":1,\"c\":2}"), merge);
        assert_eq!(shown(Mode::Upsert, &["x"], "{\"c\":2}"), format!("Some(Insert) {{\"_id\":{id},\"c\":2}}"));
        assert_eq!(shown(Mode::Delete, &["c"], "{\"c\":2}"), "Some(Delete) {\"q\":{\"c\":{\"$eq\":2}},\"limit\":1}");
        assert_eq!(shown(Mode::Delete, &["_id"], "{\"c\":2}"), "None");
        let partly = "Some(Delete) {\"q\":{\"c\":{\"$eq\":2},\"d.e\":{\"$eq\":null}},\"limit\":1}";
        assert_eq!(shown(Mode::Delete, &["c", "d.e"], "{\"c\":2}"), partly);
    }
}
