//! What the log says of a write beyond its effects, for the oplog: whose documents they are, and which is gone.
//!
//! ```text
//! 1  16 bytes of UUID, namespace     the collection of the effects that follow
//! 2  document {_id}                  of the record that is deleted next
//! 3  document {ns, ui, o}            a change of the catalog, as the oplog has it
//! 4                                  the server was started
//! ```

use crate::{Catalog, Collection, Namespace, from_storage};
use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_store::Batch;

const COLLECTION: u8 = 1;
const DELETED: u8 = 2;
const COMMAND: u8 = 3;
const STARTED: u8 = 4;

/// A note as it is read back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Note<'a> {
    /// The collection of the effects that follow.
    Collection {
        /// Its identity.
        uuid: [u8; 16],
        /// Its name at the time.
        namespace: &'a str,
    },
    /// What is deleted next: its `_id` and nothing else.
    Deleted(DocumentRef<'a>),
    /// A change of the catalog: `ns`, `ui` and `o` of its oplog entry.
    Command(DocumentRef<'a>),
    /// The server was started.
    Started,
}

impl<'a> Note<'a> {
    /// Reads a note; `None` for what none of this program's is.
    pub fn decode(content: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = content.split_first()?;
        Some(match kind {
            COLLECTION => {
                let (uuid, name) = rest.split_first_chunk()?;
                Self::Collection { uuid: *uuid, namespace: std::str::from_utf8(name).ok()? }
            }
            DELETED => Self::Deleted(DocumentRef::parse(rest).ok()?),
            COMMAND => Self::Command(DocumentRef::parse(rest).ok()?),
            STARTED => Self::Started,
            _ => return None,
        })
    }
}

/// What is written at each start, so that an oplog is never empty.
pub(crate) fn batch_of_start() -> Batch<'static> {
    let mut batch = Batch::new();
    batch.note(&[STARTED]);
    batch
}

impl Catalog {
    /// Writes a record that changes nothing, so that what can be read is known to be complete up to a later time.
    /// # Errors
    /// Those of the log.
    pub fn pass_time(&self) -> Result<()> {
        self.store().commit(&Batch::new()).map(drop).map_err(from_storage)
    }
}

/// Whether the oplog tells of a collection: what is `local` to a server is not its concern.
fn is_told_of(collection: &Collection) -> bool {
    collection.store.keeps_history() && collection.namespace().database() != Namespace::OPLOG_DATABASE
}

/// Begins a batch of writes to a collection's documents.
pub(crate) fn batch_of<'d>(collection: &Collection) -> Batch<'d> {
    let mut batch = Batch::new();
    if is_told_of(collection) {
        let namespace = collection.namespace();
        let mut content = Vec::with_capacity(1 + collection.uuid.len() + namespace.as_str().len());
        content.push(COLLECTION);
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

/// Notes a change of the catalog that concerns a collection, before it is made; `o` begins with the command's name.
pub(crate) fn put_command(batch: &mut Batch<'_>, collection: &Collection, o: &DocumentBuf) {
    if is_told_of(collection) {
        let namespace = format!("{}.$cmd", collection.namespace().database());
        let uuid = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &collection.uuid };
        put(batch, COMMAND, &DocumentBuf::new().with("ns", namespace.as_str()).with("ui", uuid).with("o", o));
    }
}

fn put(batch: &mut Batch<'_>, kind: u8, document: &DocumentBuf) {
    let mut content = vec![kind];
    content.extend_from_slice(document.as_ref().as_bytes());
    batch.note(&content);
}
