//! What a transaction did, one operation after the other, as its entry in the oplog has it.

use crate::notes::{OPERATION, TRANSACTION, encoded, is_told_of};
use crate::retry::SessionName;
use crate::{Collection, Note};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_store::{Batch, Effect, Statement, part_with_room};

/// The version of the format of deltas.
const DELTA_VERSION: i32 = 2;

/// Notes of operations, in their order; none where no oplog is kept.
#[derive(Default)]
pub(super) struct Operations {
    notes: Vec<Vec<u8>>,
    bytes: u64,
}

/// The collection of the effects that follow, as a note names it.
type Named<'a> = ([u8; 16], &'a str);

impl Operations {
    /// What they take in memory and in the log, about.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds those of a batch, which its notes tell of.
    pub fn add(&mut self, batch: &Batch<'_>) {
        let (mut collection, mut deleted, mut delta, mut before): (Option<Named<'_>>, _, _, _) =
            (None, None, None, None);
        for statement in batch.noted() {
            let operation = match statement {
                Statement::Note(content) => {
                    match Note::decode(content) {
                        Some(Note::Collection { uuid, namespace }) => collection = Some((uuid, namespace)),
                        Some(Note::Deleted(id)) => deleted = Some(id),
                        Some(Note::Modified(told)) => delta = Some(told),
                        Some(Note::Before(document)) => before = Some(document),
                        _ => {}
                    }
                    continue;
                }
                Statement::Effect(effect) => {
                    let Some(collection) = collection else { continue };
                    match effect {
                        Effect::PutRecord { document, replaced: None, .. } => {
                            inserted(collection, DocumentRef::trusted(document))
                        }
                        Effect::PutRecord { document, .. } => {
                            let images = before.take();
                            updated(collection, DocumentRef::trusted(document), delta.take(), images)
                        }
                        Effect::DeleteRecord { .. } => {
                            let id = deleted.take().unwrap_or(DocumentRef::EMPTY);
                            let told = DocumentBuf::new().with("e", &begin("d", collection).with("o", id));
                            with_before(told, before.take())
                        }
                        _ => continue,
                    }
                }
            };
            self.push(&operation);
        }
    }

    /// Adds a change of the catalog; `o` begins with the command's name.
    pub fn add_command(&mut self, collection: &Collection, o: &DocumentBuf) {
        if is_told_of(collection) {
            let namespace = format!("{}.$cmd", collection.namespace().database());
            self.push(&DocumentBuf::new().with("e", &begin("c", (collection.uuid, &namespace)).with("o", o)));
        }
    }

    fn push(&mut self, operation: &DocumentBuf) {
        let note = encoded(OPERATION, operation);
        self.bytes += (note.len() + size_of::<Vec<u8>>()) as u64;
        self.notes.push(note);
    }

    /// Puts them into the batches of the commit, a new one wherever the last would be longer than `part_bytes`. Each that
    /// has some says of which transaction they are, and which is its first.
    pub fn put_into(&self, session: SessionName, number: i64, parts: &mut Vec<Batch<'_>>, part_bytes: usize) {
        let told = DocumentBuf::new().with("lsid", &session.to_document()).with("txnNumber", number);
        let mut told_in = None;
        for (first, note) in self.notes.iter().enumerate() {
            part_with_room(parts, part_bytes.saturating_sub(note.len()));
            let last = parts.len() - 1;
            if told_in != Some(last) {
                told_in = Some(last);
                let first = told.clone().with("first", first as i64);
                parts[last].note(&encoded(TRANSACTION, &first));
            }
            parts[last].note(note);
        }
    }
}

fn begin(operation: &str, (uuid, namespace): Named<'_>) -> DocumentBuf {
    DocumentBuf::new()
        .with("op", operation)
        .with("ns", namespace)
        .with("ui", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &uuid })
}

fn key(document: DocumentRef<'_>) -> DocumentBuf {
    DocumentBuf::new().with("_id", document.get("_id").unwrap_or(ValueRef::Null))
}

fn inserted(collection: Named<'_>, document: DocumentRef<'_>) -> DocumentBuf {
    DocumentBuf::new().with("e", &begin("i", collection).with("o", document).with("o2", &key(document)))
}

fn updated(
    collection: Named<'_>,
    document: DocumentRef<'_>,
    delta: Option<DocumentRef<'_>>,
    before: Option<DocumentRef<'_>>,
) -> DocumentBuf {
    let entry = match delta {
        None => begin("u", collection).with("o", document),
        Some(delta) => {
            begin("u", collection).with("o", &DocumentBuf::new().with("$v", DELTA_VERSION).with("diff", delta))
        }
    };
    let mut told = DocumentBuf::new().with("e", &entry.with("o2", &key(document)));
    if before.is_some() {
        // A collection that keeps the documents before a change keeps those after it as well.
        told.append("after", document);
    }
    with_before(told, before)
}

fn with_before(mut told: DocumentBuf, before: Option<DocumentRef<'_>>) -> DocumentBuf {
    if let Some(before) = before {
        told.append("before", before);
    }
    told
}
