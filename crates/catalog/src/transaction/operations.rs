//! What a transaction did, one operation after the other, as its entry in the oplog has it.

use crate::notes::{OPERATION, TRANSACTION, encoded, is_told_of};
use crate::retry::SessionName;
use crate::{Collection, Note};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_store::{Batch, Effect, Statement, part_with_room};

/// The version of the format of deltas.
const DELTA_VERSION: i32 = 2;
/// What a note of an operation takes besides the namespace and its longest document, about.
const HEAD_BYTES: usize = 128;

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
            match statement {
                Statement::Note(content) => match Note::decode(content) {
                    Some(Note::Collection { uuid, namespace, .. }) => collection = Some((uuid, namespace)),
                    Some(Note::Deleted(id)) => deleted = Some(id),
                    Some(Note::Modified(told)) => delta = Some(told),
                    Some(Note::Before(document)) => before = Some(document),
                    _ => {}
                },
                Statement::Remember { .. } | Statement::Forget { .. } => {}
                Statement::Effect(effect) => {
                    let Some(collection) = collection else { continue };
                    match effect {
                        Effect::PutRecord { document, replaced: None, .. } => {
                            let document = DocumentRef::trusted(document);
                            self.push("i", collection, document, |told| inserted(document, told));
                        }
                        Effect::PutRecord { document, .. } => {
                            let (document, delta, before) =
                                (DocumentRef::trusted(document), delta.take(), before.take());
                            let longest = delta.filter(|_| before.is_none()).unwrap_or(document);
                            self.push("u", collection, longest, |told| updated(document, delta, before, told));
                        }
                        Effect::DeleteRecord { .. } => {
                            let (id, before) = (deleted.take().unwrap_or(DocumentRef::EMPTY), before.take());
                            self.push("d", collection, before.unwrap_or(id), |told| {
                                told.append("o", id).end();
                                put_before(before, told);
                            });
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Adds a change of the catalog; `o` begins with the command's name.
    pub fn add_command(&mut self, collection: &Collection, o: &DocumentBuf) {
        if is_told_of(collection) {
            let namespace = format!("{}.$cmd", collection.namespace().database());
            let o = o.as_ref();
            self.push("c", (collection.uuid, &namespace), o, |told| {
                told.append("o", o).end();
            });
        }
    }

    /// Adds an operation as a note: `{e: {op, ns, ui, ..}, ..}`, of which `rest` writes what is left, within `e` at first.
    /// `longest` is about as long as that.
    fn push(
        &mut self,
        operation: &str,
        (uuid, namespace): Named<'_>,
        longest: DocumentRef<'_>,
        rest: impl FnOnce(&mut Writer<'_>),
    ) {
        let mut note = Vec::with_capacity(HEAD_BYTES + namespace.len() + longest.len_bytes());
        note.push(OPERATION);
        let mut told = Writer::new(&mut note);
        told.begin_document("e").append("op", operation).append("ns", namespace);
        told.append("ui", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &uuid });
        rest(&mut told);
        told.end();
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

fn put_key(document: DocumentRef<'_>, told: &mut Writer<'_>) {
    told.begin_document("o2").append("_id", document.get("_id").unwrap_or(ValueRef::Null)).end();
}

fn inserted(document: DocumentRef<'_>, told: &mut Writer<'_>) {
    told.append("o", document);
    put_key(document, told);
    told.end();
}

fn updated(
    document: DocumentRef<'_>,
    delta: Option<DocumentRef<'_>>,
    before: Option<DocumentRef<'_>>,
    told: &mut Writer<'_>,
) {
    match delta {
        None => told.append("o", document),
        Some(delta) => told.begin_document("o").append("$v", DELTA_VERSION).append("diff", delta).end(),
    };
    put_key(document, told);
    told.end();
    if before.is_some() {
        // A collection that keeps the documents before a change keeps those after it as well.
        told.append("after", document);
    }
    put_before(before, told);
}

fn put_before(before: Option<DocumentRef<'_>>, told: &mut Writer<'_>) {
    if let Some(before) = before {
        told.append("before", before);
    }
}
