//! Notes in the log about a write, beyond its effects. The oplog is made from them: they name collections and deleted
//! documents.
//!
//! ```text
//! 1  16 bytes of UUID, namespace     the collection of the effects that follow
//! 2  document {_id}                  of the record that is deleted next
//! 3  document {ns, ui, o, o2}        a change of the catalog, as in its oplog entry; some have no `o2`
//! 4                                  the server was started
//! 5  document                        the delta of an update, for the document that is put next
//! 6  document                        the document before the next change, if the collection keeps it
//! 7  document {lsid, txnNumber, first}  the record is a transaction's commit, or a part of it; its operations follow,
//!                                 beginning with number `first`
//! 8  document {e, after, before}     an operation of the transaction, as in its oplog entry; the documents after and
//!                                 before it if the collection keeps them
//! 9  document                        a client's own entry, which changes nothing
//! 10 16 bytes of UUID, namespace     as 1, but the documents that follow are copies of another collection's
//! ```

use crate::delta;
use crate::{Collection, Index};
use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_store::{Batch, Noted, Statement};
use std::sync::Arc;

const COLLECTION: u8 = 1;
const DELETED: u8 = 2;
const COMMAND: u8 = 3;
const STARTED: u8 = 4;
const MODIFIED: u8 = 5;
const BEFORE: u8 = 6;
pub(crate) const TRANSACTION: u8 = 7;
pub(crate) const OPERATION: u8 = 8;
const REMARK: u8 = 9;
const COPIES: u8 = 10;

/// A decoded note.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note<'a> {
    /// The collection of the effects that follow.
    Collection {
        /// The collection's UUID.
        uuid: [u8; 16],
        /// Its name at the time.
        namespace: &'a str,
        /// Whether the documents that follow are copies of another collection's, which change streams do not report.
        are_copies: bool,
    },
    /// The `_id`, and nothing else, of the document that is deleted next.
    Deleted(DocumentRef<'a>),
    /// A change of the catalog: `ns`, `ui`, `o` and perhaps `o2` of its oplog entry.
    Command(DocumentRef<'a>),
    /// The server was started.
    Started,
    /// The changes in the document that is put next: `diff` of its oplog entry.
    Modified(DocumentRef<'a>),
    /// The document before the next change.
    Before(DocumentRef<'a>),
    /// The record is the commit of a transaction or a part of it: `lsid`, `txnNumber`, and `first`, the number of
    /// operations in earlier parts. [`Note::Operation`]s describe its effects.
    Transaction(DocumentRef<'a>),
    /// An operation of a transaction.
    Operation {
        /// Its oplog entry: `op`, `ns`, `ui`, `o` and perhaps `o2`.
        entry: DocumentRef<'a>,
        /// The document after it, if the collection keeps that.
        after: Option<DocumentRef<'a>>,
        /// The document before it, if the collection keeps that.
        before: Option<DocumentRef<'a>>,
    },
    /// A client's addition to the oplog: `o` of an entry that changes nothing.
    Remark(DocumentRef<'a>),
}

impl<'a> Note<'a> {
    /// Reads a note; `None` if it is damaged or of an unknown kind.
    pub fn decode(content: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = content.split_first()?;
        Some(match kind {
            COLLECTION | COPIES => {
                let (uuid, name) = rest.split_first_chunk()?;
                let namespace = std::str::from_utf8(name).ok()?;
                Self::Collection { uuid: *uuid, namespace, are_copies: kind == COPIES }
            }
            DELETED => Self::Deleted(DocumentRef::parse_around(rest).ok()?),
            COMMAND => Self::Command(DocumentRef::parse_around(rest).ok()?),
            STARTED => Self::Started,
            MODIFIED => Self::Modified(DocumentRef::parse_around(rest).ok()?),
            BEFORE => Self::Before(DocumentRef::parse_around(rest).ok()?),
            TRANSACTION => Self::Transaction(DocumentRef::parse_around(rest).ok()?),
            OPERATION => {
                let told = DocumentRef::parse_around(rest).ok()?;
                let document = |name| told.get(name).and_then(ValueRef::as_document);
                Self::Operation { entry: document("e")?, after: document("after"), before: document("before") }
            }
            REMARK => Self::Remark(DocumentRef::parse_around(rest).ok()?),
            _ => return None,
        })
    }
}

/// Calls `tell` with the names of the collections in a record's notes, for followers of these collections.
pub(crate) fn names_of(said: Noted<'_>, tell: &mut dyn FnMut(&str)) {
    for statement in said {
        let Statement::Note(content) = statement else { continue };
        // Notes of other kinds can be large, and decoding reads them whole.
        if !matches!(content.first(), Some(&(COLLECTION | COMMAND | OPERATION | COPIES))) {
            continue;
        }
        match Note::decode(content) {
            Some(Note::Collection { namespace, .. }) => tell(namespace),
            Some(Note::Command(told) | Note::Operation { entry: told, .. }) => {
                tell(told.get("ns").and_then(ValueRef::as_str).unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// The batch that a start writes, so that an oplog is never empty.
pub(crate) fn batch_of_start() -> Batch<'static> {
    let mut batch = Batch::new();
    batch.note(&[STARTED]);
    batch
}

/// The batch of an entry that changes nothing, with `data` as its `o`.
pub(crate) fn batch_of_remark(data: DocumentRef<'_>) -> Batch<'static> {
    let mut batch = Batch::new();
    batch.note(&[&[REMARK], data.as_bytes()].concat());
    batch
}

/// Whether the oplog records changes to a collection.
pub(crate) fn is_told_of(collection: &Collection) -> bool {
    collection.store.keeps_history() && collection.namespace().is_replicated()
}

/// Begins a batch of writes to a collection's documents.
pub(crate) fn batch_of<'d>(collection: &Collection) -> Batch<'d> {
    batch_under(collection, COLLECTION)
}

/// Begins a batch of copies of another collection's documents.
pub(crate) fn batch_of_copies<'d>(collection: &Collection) -> Batch<'d> {
    batch_under(collection, COPIES)
}

fn batch_under<'d>(collection: &Collection, kind: u8) -> Batch<'d> {
    let mut batch = Batch::new();
    if is_told_of(collection) {
        let namespace = collection.namespace();
        let mut content = Vec::with_capacity(1 + collection.uuid.len() + namespace.as_str().len());
        content.push(kind);
        content.extend_from_slice(&collection.uuid);
        content.extend_from_slice(namespace.as_str().as_bytes());
        batch.note(&content);
    }
    batch
}

/// Notes the `_id` of a document that the batch deletes next.
pub(crate) fn put_deleted(batch: &mut Batch<'_>, collection: &Collection, document: &[u8]) {
    if is_told_of(collection) {
        let id = DocumentRef::trusted(document).get("_id").unwrap_or(ValueRef::Null);
        put(batch, DELETED, &DocumentBuf::new().with("_id", id));
    }
}

/// Notes the change to the document that the batch replaces or deletes next.
pub(crate) fn put_change(batch: &mut Batch<'_>, collection: &Collection, current: &[u8], next: Option<&Next<'_>>) {
    if !is_told_of(collection) {
        return;
    }
    let options = collection.options();
    let keeps_images = (*options).as_ref().get("changeStreamPreAndPostImages");
    let keeps_images = keeps_images.and_then(ValueRef::as_document).and_then(|images| images.get("enabled"));
    if matches!(keeps_images, Some(ValueRef::Boolean(true))) {
        put(batch, BEFORE, &DocumentRef::trusted(current).to_owned());
    }
    match next {
        None => put_deleted(batch, collection, current),
        Some(Next { origin: Origin::Operators(Some(delta)), .. }) => put(batch, MODIFIED, delta),
        Some(Next { document, origin: Origin::Pipeline }) => {
            let (before, after) = (DocumentRef::trusted(current), DocumentRef::trusted(document));
            // As in MongoDB, the document is recorded whole if it is shorter than the delta.
            let is_shorter = |delta: &DocumentBuf| delta.len_bytes() < document.len();
            if let Some(delta) = delta::between(before, after).filter(is_shorter) {
                put(batch, MODIFIED, &delta);
            }
        }
        Some(Next { origin: Origin::Operators(None) | Origin::Replacement, .. }) => {}
    }
}

/// A document that replaces another.
pub(crate) struct Next<'d> {
    pub document: &'d [u8],
    pub origin: &'d Origin,
}

/// How the new document was made.
pub(crate) enum Origin {
    /// Independently of the previous document.
    Replacement,
    /// By update operators, with the delta of their changes.
    Operators(Option<DocumentBuf>),
    /// By a pipeline, from the previous document.
    Pipeline,
}

/// The batch that records the drop of a database.
pub(crate) fn batch_of_dropped_database<'d>(database: &str) -> Batch<'d> {
    let mut batch = Batch::new();
    let namespace = format!("{database}.$cmd");
    let o = DocumentBuf::new().with("dropDatabase", 1);
    put(&mut batch, COMMAND, &DocumentBuf::new().with("ns", namespace.as_str()).with("o", &o));
    batch
}

/// Oplog commands for indexes that were built. As in MongoDB, each index has a command of its own if the collection is
/// empty; otherwise one command has all indexes of a build.
pub(crate) fn built_commands(collection: &Collection, built: &[Arc<Index>]) -> Vec<DocumentBuf> {
    let name = collection.namespace();
    if built.len() > 1 && collection.count() > 0 {
        let indexes: ArrayBuf = built.iter().map(|index| &index.document).collect();
        return vec![DocumentBuf::new().with("commitIndexBuild", name.collection()).with("indexes", &indexes)];
    }
    let command = |index: &Arc<Index>| {
        let mut command = DocumentBuf::new().with("createIndexes", name.collection());
        command.extend(index.document.as_ref());
        command
    };
    built.iter().map(command).collect()
}

/// Notes a change of the catalog to a collection, before it is made. `o` begins with the name of the command.
pub(crate) fn put_command(batch: &mut Batch<'_>, collection: &Collection, o: &DocumentBuf) {
    put_command_after(batch, collection, o, None);
}

/// As [`put_command`], with `o2`: the state before the change.
pub(crate) fn put_command_after(
    batch: &mut Batch<'_>,
    collection: &Collection,
    o: &DocumentBuf,
    o2: Option<&DocumentBuf>,
) {
    if is_told_of(collection) {
        let namespace = format!("{}.$cmd", collection.namespace().database());
        let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid };
        let mut told = DocumentBuf::new().with("ns", namespace.as_str()).with("ui", uuid).with("o", o);
        if let Some(o2) = o2 {
            told.append("o2", o2);
        }
        put(batch, COMMAND, &told);
    }
}

/// The oplog's `o2` for a change of a collection's options or of an index's: the options before it.
pub(crate) fn before_modification(collection: &Collection, index: Option<&DocumentBuf>) -> DocumentBuf {
    let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid };
    let mut options = DocumentBuf::new().with("uuid", uuid);
    options.extend((*collection.options()).as_ref());
    let mut before = DocumentBuf::new().with("collectionOptions_old", &options);
    if let Some(index) = index {
        before.append("indexOptions_old", index);
    }
    before
}

fn put(batch: &mut Batch<'_>, kind: u8, document: &DocumentBuf) {
    batch.note(&encoded(kind, document));
}

/// A note that consists of a document.
pub(crate) fn encoded(kind: u8, document: &DocumentBuf) -> Vec<u8> {
    let mut content = vec![kind];
    content.extend_from_slice(document.as_ref().as_bytes());
    content
}
