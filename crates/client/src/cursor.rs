//! All documents of a cursor, batch by batch.

use crate::connection::Connection;
use crate::error::ClientError;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use std::collections::VecDeque;

/// Iterates over a server-side cursor; kills it when dropped early.
pub struct Cursor<'c> {
    connection: &'c mut Connection,
    database: String,
    collection: String,
    /// The cursor's id; 0 once the server has no more documents.
    id: i64,
    batch: VecDeque<DocumentBuf>,
}

impl Connection {
    /// Runs a command that returns a cursor (`find`, `aggregate`, `listCollections`, ...) and iterates over all its
    /// documents.
    /// # Errors
    /// As [`Self::run_command`]; the iterator returns the errors of later batches.
    pub fn find_all(&mut self, database: &str, command: DocumentRef<'_>) -> Result<Cursor<'_>, ClientError> {
        let reply = self.run_command(database, command)?;
        Cursor::new(self, database, &reply)
    }
}

impl<'c> Cursor<'c> {
    fn new(connection: &'c mut Connection, database: &str, reply: &DocumentBuf) -> Result<Self, ClientError> {
        let Some((id, namespace, batch)) = read_cursor(reply.as_ref(), "firstBatch") else {
            return Err(connection.violation(format!("no cursor in the reply: {reply:?}")));
        };
        let collection = namespace.split_once('.').map_or("", |(_, collection)| collection).to_owned();
        Ok(Self { database: database.to_owned(), collection, id, batch: read_batch(batch), connection })
    }

    fn get_more(&mut self) -> Result<(), ClientError> {
        let command = DocumentBuf::new().with("getMore", self.id).with("collection", &self.collection);
        let reply = self.connection.run_command(&self.database, command.as_ref())?;
        let Some((id, _, batch)) = read_cursor(reply.as_ref(), "nextBatch") else {
            return Err(self.connection.violation(format!("no cursor in the reply: {reply:?}")));
        };
        self.id = id;
        self.batch = read_batch(batch);
        Ok(())
    }
}

fn read_cursor<'r>(reply: DocumentRef<'r>, batch_name: &str) -> Option<(i64, &'r str, ArrayRef<'r>)> {
    let cursor = reply.get("cursor")?.as_document()?;
    let ValueRef::Int64(id) = cursor.get("id")? else { return None };
    Some((id, cursor.get("ns")?.as_str()?, cursor.get(batch_name)?.as_array()?))
}

fn read_batch(batch: ArrayRef<'_>) -> VecDeque<DocumentBuf> {
    batch.iter().filter_map(ValueRef::as_document).map(DocumentRef::to_owned).collect()
}

impl Iterator for Cursor<'_> {
    type Item = Result<DocumentBuf, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.batch.is_empty() && self.id != 0 {
            if let Err(error) = self.get_more() {
                self.id = 0;
                return Some(Err(error));
            }
        }
        self.batch.pop_front().map(Ok)
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        if self.id != 0 {
            let ids: ArrayBuf = [self.id].into_iter().collect();
            let command = DocumentBuf::new().with("killCursors", &self.collection).with("cursors", &ids);
            // The server discards idle cursors by itself: a failure here loses nothing.
            let _ = self.connection.run_command(&self.database, command.as_ref());
        }
    }
}
