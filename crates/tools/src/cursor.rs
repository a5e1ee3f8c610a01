//! Reading a server's cursor as encoded documents, with the next batches already asked for.

use crate::link::{Command, Link};
use crate::progress::{Activity, Progress};
use bunko_archive::each_document;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, MAX_INTERNAL_DOCUMENT_BYTES, ValueRef};
use bunko_client::{ClientError, check_reply};

/// Batches that are asked for before they are needed: while one is copied, the server fills the other. A request for
/// a batch is a hundred bytes, so sending it never waits for the reply that is under way.
const AHEAD: usize = 2;
/// Target size of a batch, in bytes. Larger ones leave the processor's caches on their way and gain nothing.
const BATCH_BYTES: u64 = 1024 * 1024;
/// Assumed length of a document before the first has arrived, in bytes.
pub(crate) const DOCUMENT_BYTES_GUESSED: u64 = 1024;
/// Maximum number of documents that a batch asks for, however small they are.
const BATCH_DOCUMENTS_MAX: u64 = 100_000;

/// Size of one batch and place of its last document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Documents in the batch.
    pub documents: usize,
    /// Offset of the last document in the buffer.
    pub last_offset: usize,
}

/// A cursor on a server, read batch by batch.
pub(crate) struct Cursor<'l> {
    link: &'l mut dyn Link,
    progress: &'l Progress,
    database: &'l str,
    /// Collection part of the cursor's namespace. For listings it is not a collection's name; empty before the first
    /// reply.
    collection: String,
    /// 0 once the server has nothing more, or before the first reply.
    id: i64,
    batch_documents: u64,
}

impl<'l> Cursor<'l> {
    /// Sends a command that makes a cursor (`find`, `aggregate`, `listCollections`), its batch size included.
    /// # Errors
    /// The error of the connection.
    pub fn open(
        link: &'l mut dyn Link,
        progress: &'l Progress,
        database: &'l str,
        command: &DocumentBuf,
    ) -> Result<Self, ClientError> {
        link.send(Command { database, body: command.as_ref(), documents: None })?;
        Ok(Self { link, progress, database, collection: String::new(), id: 0, batch_documents: 0 })
    }

    /// Appends the next batch to `out`; `None` at the end.
    /// # Errors
    /// The server's error, or the connection's; `out` may then hold documents of a broken batch.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Copied>, ClientError> {
        if self.link.in_flight() == 0 {
            return Ok(None);
        }
        let before = out.len();
        let reply = self.progress.time(Activity::Server, || self.link.receive())?;
        check_reply(reply).map_err(ClientError::Command)?;
        let (id, namespace, batch) = read_cursor(reply).ok_or_else(|| broken("a reply without a cursor"))?;
        if self.collection.is_empty() {
            namespace.split_once('.').map_or("", |(_, collection)| collection).clone_into(&mut self.collection);
        }
        let copied =
            append_documents(batch, out).ok_or_else(|| broken("a batch that holds something else than documents"))?;
        self.id = id;
        self.adapt(copied.documents as u64, (out.len() - before) as u64);
        if id == 0 {
            self.drain()?;
        } else {
            self.ask_ahead()?;
        }
        Ok(Some(copied))
    }

    /// Closes the cursor before its end.
    /// # Errors
    /// The error of the connection.
    pub fn close(mut self) -> Result<(), ClientError> {
        self.drain()?;
        if self.id != 0 {
            let ids = [self.id].into_iter().collect::<bunko_bson::ArrayBuf>();
            let command = DocumentBuf::new().with("killCursors", &self.collection).with("cursors", &ids);
            self.link.run(self.database, &command)?;
        }
        Ok(())
    }

    /// Receives and drops the replies to batches that were asked for beyond the end: the server no longer knows the
    /// cursor.
    fn drain(&mut self) -> Result<(), ClientError> {
        while self.link.in_flight() > 0 {
            self.link.receive()?;
        }
        Ok(())
    }

    fn ask_ahead(&mut self) -> Result<(), ClientError> {
        let command = DocumentBuf::new()
            .with("getMore", self.id)
            .with("collection", &self.collection)
            .with("batchSize", self.batch_documents as i64);
        while self.link.in_flight() < AHEAD {
            self.link.send(Command { database: self.database, body: command.as_ref(), documents: None })?;
        }
        Ok(())
    }

    /// Adjusts the batch size to the length of documents, because servers count batches in documents.
    fn adapt(&mut self, documents: u64, bytes: u64) {
        self.batch_documents = batch_documents(bytes.checked_div(documents).unwrap_or(DOCUMENT_BYTES_GUESSED));
    }
}

/// Number of documents of that length in a batch.
pub(crate) fn batch_documents(document_bytes: u64) -> u64 {
    (BATCH_BYTES / document_bytes.max(1)).clamp(1, BATCH_DOCUMENTS_MAX)
}

/// Reads all documents of a cursor that is known to be short.
/// # Errors
/// As [`Cursor::next`].
pub(crate) fn collect(
    link: &mut dyn Link,
    progress: &Progress,
    database: &str,
    command: &DocumentBuf,
) -> Result<Vec<DocumentBuf>, ClientError> {
    let mut cursor = Cursor::open(link, progress, database, command)?;
    let mut documents = Vec::new();
    let mut bytes = Vec::new();
    while cursor.next(&mut bytes)?.is_some() {
        for document in each_document(&bytes) {
            // Callers read listings field by field, so damage must show here.
            documents.push(DocumentBuf::parse(document.to_vec()).map_err(|error| broken(&error.to_string()))?);
        }
        bytes.clear();
    }
    Ok(documents)
}

fn broken(detail: &str) -> ClientError {
    ClientError::Protocol { address: "the server".into(), detail: detail.into() }
}

fn read_cursor(reply: DocumentRef<'_>) -> Option<(i64, &str, ArrayRef<'_>)> {
    let (mut id, mut namespace, mut batch) = (None, None, None);
    for element in reply.get("cursor")?.as_document()? {
        match (element.name, element.value) {
            ("id", ValueRef::Int64(number)) => id = Some(number),
            ("ns", ValueRef::String(text)) => namespace = Some(text),
            ("firstBatch" | "nextBatch", ValueRef::Array(array)) => batch = Some(array),
            _ => {}
        }
    }
    Some((id?, namespace?, batch?))
}

/// Copies the documents of an array one after another; `None` if an element is not a document, or a length does not
/// fit.
///
/// The elements are walked here and not by the array's iterator, which ends early at malformed bytes: documents would
/// be missing from the dump without an error.
fn append_documents(batch: ArrayRef<'_>, out: &mut Vec<u8>) -> Option<Copied> {
    let encoded = batch.as_document().as_bytes();
    let mut rest = encoded.get(4..encoded.len() - 1)?;
    let mut copied = Copied { documents: 0, last_offset: out.len() };
    // Exact, because a large document should not leave twice its size reserved in a long-lived buffer.
    out.reserve_exact(rest.len());
    while let Some((&kind, behind)) = rest.split_first() {
        let name_bytes = behind.iter().position(|&byte| byte == 0)?;
        let value = &behind[name_bytes + 1..];
        let length = usize::try_from(i32::from_le_bytes(*value.first_chunk()?)).ok()?;
        if kind != 0x03 || !(5..=MAX_INTERNAL_DOCUMENT_BYTES).contains(&length) {
            return None;
        }
        let (document, behind) = value.split_at_checked(length)?;
        copied.last_offset = out.len();
        copied.documents += 1;
        out.extend_from_slice(document);
        rest = behind;
    }
    Some(copied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ArrayBuf;

    fn batch(count: i32) -> (ArrayBuf, Vec<u8>) {
        let documents: Vec<_> = (0..count).map(|id| DocumentBuf::new().with("_id", id)).collect();
        let bytes = documents.iter().flat_map(|document| document.as_ref().as_bytes().to_vec()).collect();
        (documents.iter().collect(), bytes)
    }

    #[test]
    fn documents_are_copied_without_the_array_around_them() {
        let (array, bytes) = batch(12);
        let mut out = vec![7];
        let copied = append_documents(array.as_ref(), &mut out).expect("documents");
        assert_eq!(out[1..], bytes);
        assert_eq!((copied.documents, copied.last_offset), (12, out.len() - 14));
        assert_eq!(append_documents(ArrayRef::EMPTY, &mut out).map(|copied| copied.documents), Some(0));
    }

    #[test]
    fn no_document_is_lost_in_silence() {
        let (array, _) = batch(3);
        let encoded = array.as_ref().as_document().as_bytes();
        // The second element's type, name and length.
        for (offset, byte) in [(4 + 17, 0x02), (4 + 18, 0), (4 + 20, 200), (4 + 20, 4), (4 + 23, 0x80)] {
            let mut damaged = encoded.to_vec();
            damaged[offset] = byte;
            let array = ArrayRef::from_document(DocumentRef::trusted(&damaged));
            assert_eq!(append_documents(array, &mut Vec::new()), None, "byte {offset}");
        }
        let numbers: ArrayBuf = [1, 2].into_iter().collect();
        assert_eq!(append_documents(numbers.as_ref(), &mut Vec::new()), None);
    }

    #[test]
    fn batches_are_counted_in_documents_of_the_size_seen() {
        assert_eq!(batch_documents(1024), 1024);
        assert_eq!(batch_documents(16 * 1024 * 1024), 1);
        assert_eq!(batch_documents(0), BATCH_DOCUMENTS_MAX);
    }
}
