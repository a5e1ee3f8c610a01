//! Finds out whether documents that were sent before a connection broke have arrived.

use crate::Link;
use crate::cursor::Cursor;
use crate::progress::Progress;
use bunko_archive::each_document;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_client::ClientError;
use foldhash::HashSet;
use xxhash_rust::xxh3::xxh3_128;

/// Bytes of documents in one query: the reply is as long if the server has them all.
const ASKED_BYTES: usize = 8 * 1024 * 1024;
/// Documents in one query: their `_id`s are in one command.
const ASKED_DOCUMENTS: usize = 1000;

/// Finds which of these encoded documents the collection holds, byte for byte; the results are in their order.
/// # Errors
/// The server's error, or the connection's.
pub(crate) fn are_there(
    link: &mut dyn Link,
    progress: &Progress,
    (database, collection): (&str, &str),
    documents: &[&[u8]],
) -> Result<Vec<bool>, ClientError> {
    let mut found = Vec::with_capacity(documents.len());
    let mut rest = documents;
    while !rest.is_empty() {
        let (asked, behind) = rest.split_at(first_few(rest));
        let there = find(link, progress, database, &by_ids(collection, asked))?;
        found.extend(asked.iter().map(|document| there.contains(&xxh3_128(document))));
        rest = behind;
    }
    Ok(found)
}

/// Number of documents, from the first on, that go into the next query: at least one.
fn first_few(documents: &[&[u8]]) -> usize {
    let mut bytes = 0;
    let fitting = documents.iter().take(ASKED_DOCUMENTS).take_while(|document| {
        bytes += document.len();
        bytes <= ASKED_BYTES
    });
    fitting.count().max(1)
}

fn by_ids(collection: &str, documents: &[&[u8]]) -> DocumentBuf {
    let ids: ArrayBuf = documents.iter().filter_map(|document| DocumentRef::trusted(document).get("_id")).collect();
    let filter = DocumentBuf::new().with("_id", &DocumentBuf::new().with("$in", &ids));
    DocumentBuf::new().with("find", collection).with("filter", &filter)
}

/// Hashes of the documents that a query finds: 128-bit hashes do not collide by chance.
fn find(
    link: &mut dyn Link,
    progress: &Progress,
    database: &str,
    command: &DocumentBuf,
) -> Result<HashSet<u128>, ClientError> {
    let mut cursor = Cursor::open(link, progress, database, command)?;
    let (mut hashes, mut batch) = (HashSet::default(), Vec::new());
    while cursor.next(&mut batch)?.is_some() {
        hashes.extend(each_document(&batch).map(xxh3_128));
        batch.clear();
    }
    Ok(hashes)
}
