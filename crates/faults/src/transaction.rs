//! A transaction over two collections. Most are longer than one log record, so that the commit is a chain of records.

use crate::model::{Collection, Content};
use crate::server::{Outcome, Server};
use crate::writes::{Journal, insert, inserted, update};
use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef};
use std::ops::Range;

/// The same inserts into two collections, and an update in each.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Number of its session and its `txnNumber`. No two transactions of a workload share one.
    pub number: i64,
    /// Two different collections.
    pub collections: [&'static str; 2],
    /// `_id` of the documents that the transaction inserts into each collection.
    pub ids: Range<i32>,
    /// Length of the inserted documents' field `pad` in bytes.
    pub pad_bytes: usize,
    /// `_id` of the document that the transaction changes in each collection, if the collection has it.
    pub updated: i32,
    /// How durable the commit must be before it is acknowledged.
    pub journal: Journal,
}

impl Transaction {
    /// Sends the statements and the commit. If a statement fails, no commit is sent and the transaction has no effect.
    pub(crate) fn send(&self, server: &Server) -> Outcome {
        for (index, statement) in self.statements().into_iter().enumerate() {
            let statement = self.inside(statement);
            let statement = if index == 0 { statement.with("startTransaction", true) } else { statement };
            match server.run("test", statement.as_ref()) {
                Outcome::Acknowledged(_) => {}
                Outcome::Refused(message) => return Outcome::Refused(message),
                Outcome::Unknown => return Outcome::Refused("the log failed earlier: it was not committed".to_owned()),
            }
        }
        let commit = self.inside(self.journal.concern(DocumentBuf::new().with("commitTransaction", 1)));
        server.run("admin", commit.as_ref())
    }

    fn statements(&self) -> Vec<DocumentBuf> {
        let of = |collection| {
            [insert(collection, &self.ids, self.pad_bytes), update(collection, self.updated, self.content_updated())]
        };
        self.collections.into_iter().flat_map(of).collect()
    }

    fn inside(&self, command: DocumentBuf) -> DocumentBuf {
        let mut uuid = [7; 16];
        uuid[..8].copy_from_slice(&self.number.to_le_bytes());
        let id = ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &uuid };
        let session = DocumentBuf::new().with("id", id);
        command.with("lsid", &session).with("txnNumber", self.number).with("autocommit", false)
    }

    fn content_updated(&self) -> Content {
        Content { value: -(self.number as i32), pad_bytes: 40 }
    }

    /// Applies the transaction's writes to the model of one of its collections.
    pub(crate) fn apply(&self, collection: &mut Collection) {
        collection.documents.extend(self.ids.clone().map(|id| (id, inserted(id, self.pad_bytes))));
        collection.documents.entry(self.updated).and_modify(|known| *known = self.content_updated());
    }
}
