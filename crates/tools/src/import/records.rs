//! The documents of one chunk, whatever the input's format is.

use super::bson::{BsonCutter, BsonDocuments};
use super::cutter::Cutter;
use super::flaw::Flaw;
use super::json::{Ends, JsonCutter, JsonDocuments};
use super::options::{JsonForm, Separator};
use super::queue::Chunk;
use super::table::{Columns, Row, TableCutter, TableRecords};
use bunko_bson::MAX_USER_DOCUMENT_BYTES;

/// How records are read, known once the input in front of them was read.
#[derive(Debug)]
pub(super) enum RecordFormat {
    Json(JsonForm),
    Table(Columns, Separator),
    Bson,
}

/// A record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Offset of the record in the chunk, in bytes.
    pub offset: usize,
    pub row: Row,
}

impl RecordFormat {
    /// A cutter for input that begins between two records.
    pub(super) fn cutter(&self) -> Box<dyn Cutter> {
        match self {
            Self::Json(form) => Box::new(JsonCutter::new(*form)),
            Self::Table(_, separator) => Box::new(TableCutter::new(*separator)),
            Self::Bson => Box::new(BsonCutter::default()),
        }
    }
}

/// Reads the records of one chunk.
pub(super) struct Records<'c> {
    kind: Kind<'c>,
    /// Offset of the first byte that is not UTF-8.
    broken_text: Option<(usize, u8)>,
}

enum Kind<'c> {
    Json(JsonDocuments<'c>),
    Table(TableRecords<'c>),
    Bson(BsonDocuments<'c>),
}

impl<'c> Records<'c> {
    pub(super) fn new(format: &'c RecordFormat, chunk: &'c Chunk) -> Self {
        let (text, broken_text) = match format {
            RecordFormat::Bson => ("", None),
            _ => front_text(&chunk.bytes),
        };
        let ends = Ends { is_first: chunk.is_first, is_last: chunk.is_last };
        let kind = match format {
            RecordFormat::Json(form) => Kind::Json(JsonDocuments::new(text, *form, ends)),
            RecordFormat::Table(columns, _) => Kind::Table(TableRecords::new(text, columns)),
            RecordFormat::Bson => Kind::Bson(BsonDocuments::new(&chunk.bytes)),
        };
        Self { kind, broken_text }
    }

    /// Appends the next record's document to `out`; `None` at the chunk's end.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Record>, Flaw> {
        let start = out.len();
        let next = match &mut self.kind {
            Kind::Json(documents) => documents.next(out).map(document),
            Kind::Table(records) => records.next(out).map(|read| read.map(|(offset, row)| Record { offset, row })),
            Kind::Bson(documents) => documents.next(out).map(document),
        };
        let next = match (next, self.broken_text) {
            // The record ends too early because the next byte is not UTF-8.
            (Err(Flaw { is_at_end: true, .. }) | Ok(None), Some((offset, byte))) => {
                Err(Flaw::new(offset, format!("the byte 0x{byte:02x} is not UTF-8 here")))
            }
            (Ok(Some(record)), _) if out.len() - start > MAX_USER_DOCUMENT_BYTES => {
                let bytes = out.len() - start;
                let reason = format!("this document has {bytes} bytes; a document may have {MAX_USER_DOCUMENT_BYTES}");
                Err(Flaw::new(record.offset, reason))
            }
            (next, _) => next,
        };
        if next.is_err() {
            out.truncate(start);
        }
        next
    }
}

fn document(read: Option<usize>) -> Option<Record> {
    read.map(|offset| Record { offset, row: Row::Document })
}

/// The front part of the bytes that is text, and the first byte that is not.
fn front_text(bytes: &[u8]) -> (&str, Option<(usize, u8)>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let end = error.valid_up_to();
            let text = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
            (text, Some((end, bytes[end])))
        }
    }
}
