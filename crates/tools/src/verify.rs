//! Compares documents and indexes of two collections by sums that do not depend on order.

use crate::cursor::{Cursor, DOCUMENT_BYTES_GUESSED, batch_documents, collect};
use crate::progress::Progress;
use crate::{Interrupted, Link, ToolError, retry};
use bunko_archive::{Documents, each_document};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_client::ClientError;
use std::fmt;
use xxhash_rust::xxh3::xxh3_128;

/// MongoDB's `NamespaceNotFound` and `CommandNotSupportedOnView`: there are no indexes to list.
const WITHOUT_INDEXES: [i32; 2] = [26, 166];

/// A sum over documents in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentSum {
    /// Number of documents.
    pub documents: u64,
    /// Encoded length of the documents.
    pub bytes: u64,
    /// The wrapping sum of each document's XXH3-128. Exclusive or would not notice two copies of a document.
    pub sum: u128,
}

impl DocumentSum {
    /// Adds one encoded document.
    pub fn add(&mut self, document: &[u8]) {
        self.documents += 1;
        self.bytes += document.len() as u64;
        self.sum = self.sum.wrapping_add(xxh3_128(document));
    }

    /// Adds all documents of a part.
    pub fn add_all(&mut self, documents: &Documents) {
        self.add_encoded(&documents.bytes);
    }

    /// Adds whole documents one after another.
    pub fn add_encoded(&mut self, bytes: &[u8]) {
        each_document(bytes).for_each(|document| self.add(document));
    }

    /// Adds the sum of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// The compared properties of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionSum {
    /// Sum of all documents.
    pub documents: DocumentSum,
    /// The indexes in [`normalised`] form.
    pub indexes: Vec<DocumentBuf>,
}

/// One difference between two collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `database.collection`.
    pub namespace: String,
    /// The expected and the found value.
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.namespace, self.text)
    }
}

/// Order in which documents are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingOrder {
    /// As they are stored, which is the fastest.
    Natural,
    /// As the server finds them: the documents of a time series are not stored as they are shown.
    Any,
}

/// The documents to sum.
#[derive(Clone, Copy, Debug)]
pub struct Summed<'s> {
    /// The database.
    pub database: &'s str,
    /// The collection, or time series.
    pub collection: &'s str,
    /// Order in which they are read; the sum does not depend on it.
    pub order: ReadingOrder,
    /// Read concern; if `None`, the server's default.
    pub read_concern: Option<&'s DocumentBuf>,
}

/// Reads a collection from a server and sums it. A collection that does not exist counts as empty, without indexes.
/// # Errors
/// `Server` for an error of the server or the connection, `Interrupted`.
pub fn checksum(
    link: &mut dyn Link,
    summed: Summed<'_>,
    progress: &Progress,
    interrupted: &Interrupted,
) -> Result<CollectionSum, ToolError> {
    let Summed { database, collection, order, read_concern } = summed;
    let failed = |cause| ToolError::server(format!("{database}.{collection}"), cause);
    let collected = |command: &DocumentBuf| collect(link, progress, database, command);
    let indexes = list_indexes(collection, collected).map_err(failed)?;
    let mut find =
        DocumentBuf::new().with("find", collection).with("batchSize", batch_documents(DOCUMENT_BYTES_GUESSED) as i64);
    if order == ReadingOrder::Natural {
        find.append("hint", &DocumentBuf::new().with("$natural", 1_i32));
    }
    if let Some(read_concern) = read_concern {
        find.append("readConcern", read_concern);
    }
    let mut cursor = Cursor::open(link, progress, database, &find).map_err(failed)?;
    let mut sum = DocumentSum::default();
    let mut batch = Vec::new();
    while cursor.next(&mut batch).map_err(failed)?.is_some() {
        sum.add_encoded(&batch);
        batch.clear();
        if let Err(interruption) = retry::check(interrupted) {
            // The connection may be broken as well; the interruption is reported.
            let _ = cursor.close();
            return Err(interruption);
        }
    }
    Ok(CollectionSum { documents: sum, indexes: normalised(&indexes) })
}

/// The indexes of a collection; empty for a view or a collection that does not exist. `collect` runs `listIndexes` and
/// collects the batches.
/// # Errors
/// The server's error, or the connection's.
pub(crate) fn list_indexes(
    collection: &str,
    collect: impl FnOnce(&DocumentBuf) -> Result<Vec<DocumentBuf>, ClientError>,
) -> Result<Vec<DocumentBuf>, ClientError> {
    let command = DocumentBuf::new().with("listIndexes", collection).with("cursor", &DocumentBuf::new());
    match collect(&command) {
        Err(ClientError::Command(error)) if WITHOUT_INDEXES.contains(&error.code) => Ok(Vec::new()),
        listed => listed,
    }
}

/// Index definitions in a form in which equal ones have equal bytes: sorted by name, fields in order (fields of the key
/// keep theirs), whole numbers as int, without fields that servers add or drop themselves (`v`, `ns`, `background`,
/// options that are false).
pub fn normalised(indexes: &[DocumentBuf]) -> Vec<DocumentBuf> {
    let mut normal: Vec<_> = indexes.iter().map(|index| normalise(index.as_ref())).collect();
    normal.sort_by(|left, right| name(left).cmp(name(right)));
    normal
}

fn name(index: &DocumentBuf) -> &str {
    index.as_ref().get("name").and_then(ValueRef::as_str).unwrap_or_default()
}

fn normalise(index: DocumentRef<'_>) -> DocumentBuf {
    let mut fields: Vec<_> = index
        .iter()
        .filter(|field| !matches!(field.name, "v" | "ns" | "background"))
        .filter(|field| !matches!(field.value, ValueRef::Boolean(false)))
        .collect();
    fields.sort_by(|left, right| left.name.cmp(right.name));
    let mut normal = DocumentBuf::new();
    for field in fields {
        append_normalised(&mut normal, field.name, field.value);
    }
    normal
}

fn append_normalised(normal: &mut DocumentBuf, name: &str, value: ValueRef<'_>) {
    match value {
        ValueRef::Document(document) => {
            let mut nested = DocumentBuf::new();
            for field in document {
                append_normalised(&mut nested, field.name, field.value);
            }
            normal.append(name, &nested);
        }
        ValueRef::Array(array) => {
            let mut nested = DocumentBuf::new();
            for field in array.as_document() {
                append_normalised(&mut nested, field.name, field.value);
            }
            normal.append(name, &ArrayBuf::from_document(nested));
        }
        ValueRef::Double(number) if number == f64::from(number as i32) => {
            normal.append(name, number as i32);
        }
        ValueRef::Int64(number) => {
            match i32::try_from(number) {
                Ok(number) => normal.append(name, number),
                Err(_) => normal.append(name, number),
            };
        }
        other => {
            normal.append(name, other);
        }
    }
}

/// Lists the differences of `found` from `expected`.
pub fn compare(namespace: &str, expected: &CollectionSum, found: &CollectionSum) -> Vec<Difference> {
    let mut texts = compare_documents(&expected.documents, &found.documents);
    for index in &expected.indexes {
        match found.indexes.iter().find(|other| name(other) == name(index)) {
            None => texts.push(format!("index '{}' is missing", name(index))),
            Some(other) if other != index => texts.push(format!("index '{}' is {other:?}, not {index:?}", name(index))),
            Some(_) => {}
        }
    }
    for index in &found.indexes {
        if !expected.indexes.iter().any(|other| name(other) == name(index)) {
            texts.push(format!("index '{}' is one too many", name(index)));
        }
    }
    texts.into_iter().map(|text| Difference { namespace: namespace.to_owned(), text }).collect()
}

fn compare_documents(expected: &DocumentSum, found: &DocumentSum) -> Vec<String> {
    let mut texts = Vec::new();
    if expected.documents != found.documents {
        texts.push(format!("{} documents, not {}", found.documents, expected.documents));
    }
    if expected.bytes != found.bytes {
        texts.push(format!("{} bytes of documents, not {}", found.bytes, expected.bytes));
    }
    if texts.is_empty() && expected.sum != found.sum {
        texts.push(format!(
            "as many documents and bytes, but their checksum is {:032x}, not {:032x}",
            found.sum, expected.sum
        ));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(ids: &[i32]) -> DocumentSum {
        let mut sum = DocumentSum::default();
        for &id in ids {
            sum.add(DocumentBuf::new().with("_id", id).as_ref().as_bytes());
        }
        sum
    }

    #[test]
    fn the_sum_does_not_depend_on_order_and_counts_what_is_there_twice() {
        assert_eq!(documents(&[1, 2, 3]), documents(&[3, 1, 2]));
        assert_ne!(documents(&[1, 1]).sum, documents(&[2, 2]).sum);
        let mut merged = documents(&[1]);
        merged.merge(&documents(&[2, 3]));
        assert_eq!(merged, documents(&[1, 2, 3]));
        let mut encoded = DocumentBuf::new().with("_id", 1).into_bytes();
        encoded.extend(DocumentBuf::new().with("_id", 2).into_bytes());
        let mut sum = DocumentSum::default();
        sum.add_all(&Documents { bytes: encoded, count: 2 });
        assert_eq!(sum, documents(&[1, 2]));
    }

    #[test]
    fn indexes_are_compared_by_what_they_do() {
        let key = DocumentBuf::new().with("a", 1.0).with("b", -1_i64);
        let sent =
            DocumentBuf::new().with("v", 2).with("ns", "a.b").with("sparse", false).with("name", "x").with("key", &key);
        let key = DocumentBuf::new().with("a", 1).with("b", -1);
        let kept = DocumentBuf::new().with("key", &key).with("name", "x");
        assert_eq!(normalised(std::slice::from_ref(&sent)), normalised(std::slice::from_ref(&kept)));
        let key = DocumentBuf::new().with("b", -1).with("a", 1);
        let other = DocumentBuf::new().with("key", &key).with("name", "x");
        assert_ne!(normalised(&[kept]), normalised(&[other]));
    }

    #[test]
    fn differences_are_named() {
        let index = |name: &str, unique| DocumentBuf::new().with("name", name).with("unique", unique);
        let sum = |ids: &[i32], indexes: &[DocumentBuf]| CollectionSum {
            documents: documents(ids),
            indexes: normalised(indexes),
        };
        let expected = sum(&[1, 2], &[index("a", true), index("b", true)]);
        let texts = |found: &CollectionSum| {
            compare("s.t", &expected, found).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts(&expected), Vec::<String>::new());
        let found = sum(&[1], &[index("b", false), index("c", true)]);
        let expected_texts = [
            "s.t: 1 documents, not 2",
            "s.t: 14 bytes of documents, not 28",
            "s.t: index 'a' is missing",
            r#"s.t: index 'b' is {"name": String("b")}, not {"name": String("b"), "unique": Boolean(true)}"#,
            "s.t: index 'c' is one too many",
        ];
        assert_eq!(texts(&found), expected_texts);
        let changed = CollectionSum { documents: documents(&[1, 3]), ..expected.clone() };
        assert!(texts(&changed)[0].contains("checksum"), "{:?}", texts(&changed));
    }
}
