//! The operations of a transaction, in order, as its oplog entry lists them.

use crate::notes::{OPERATION, TRANSACTION, encoded, is_told_of};
use crate::retry::SessionName;
use crate::{Collection, Note};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_store::{Batch, Effect, Statement, part_with_room};

/// Version of the delta format.
const DELTA_VERSION: i32 = 2;
/// Approximate size of an operation's note without its namespace and its longest document.
const HEAD_BYTES: usize = 128;

/// Notes of operations, in order; none if no oplog is kept.
#[derive(Default)]
pub(super) struct Operations {
    notes: Vec<Vec<u8>>,
    bytes: u64,
}

/// The collection of the following effects, as a note names it.
type Named<'a> = ([u8; 16], &'a str);

impl Operations {
    /// Approximate bytes of the notes, in memory and in the log.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds the operations of a batch, which the batch's notes describe.
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

    /// Adds a change of the catalog; `o` begins with the name of the command.
    pub fn add_command(&mut self, collection: &Collection, o: &DocumentBuf) {
        if is_told_of(collection) {
            let namespace = format!("{}.$cmd", collection.namespace().database());
            let o = o.as_ref();
            self.push("c", (collection.uuid, &namespace), o, |told| {
                told.append("o", o).end();
            });
        }
    }

    /// Adds an operation as a note: `{e: {op, ns, ui, ..}, ..}`. `rest` writes the remainder, beginning inside `e`.
    /// `longest` is about as long as the remainder.
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

    /// Adds the notes to the batches of the commit, and begins a new batch where the last would exceed `part_bytes`. In
    /// each batch, a header before the first note names the transaction and the number of that note.
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
        // A collection that keeps documents before a change also keeps them after it.
        told.append("after", document);
    }
    put_before(before, told);
}

fn put_before(before: Option<DocumentRef<'_>>, told: &mut Writer<'_>) {
    if let Some(before) = before {
        told.append("before", before);
    }
}
