//! Encoded documents as input, one after another.

use super::cutter::{Cut, Cutter};
use super::flaw::Flaw;
use bunko_bson::{DocumentRef, MAX_USER_DOCUMENT_BYTES};

/// Length of the smallest document.
const DOCUMENT_BYTES_MIN: usize = 5;
const LENGTH_BYTES: usize = 4;

/// Follows the lengths of documents.
#[derive(Default)]
pub(super) struct BsonCutter {
    /// Bytes of the current document that the next blocks hold.
    left: usize,
    /// The first bytes of a length that was cut in two.
    length: Vec<u8>,
}

impl Cutter for BsonCutter {
    fn advance(&mut self, fresh: &[u8]) -> Cut {
        let (mut at, mut last_end) = (0, None);
        while at < fresh.len() {
            if self.left == 0 {
                let taken = (LENGTH_BYTES - self.length.len()).min(fresh.len() - at);
                self.length.extend_from_slice(&fresh[at..at + taken]);
                at += taken;
                let Ok(length) = <[u8; LENGTH_BYTES]>::try_from(self.length.as_slice()) else { break };
                self.length.clear();
                match u32::from_le_bytes(length) as usize {
                    length @ DOCUMENT_BYTES_MIN..=MAX_USER_DOCUMENT_BYTES => self.left = length - LENGTH_BYTES,
                    _ => return Cut::Broken(at - taken),
                }
            }
            let passed = self.left.min(fresh.len() - at);
            at += passed;
            self.left -= passed;
            if self.left == 0 {
                last_end = Some(at);
            }
        }
        last_end.map_or(Cut::None, Cut::At)
    }
}

/// Reads the documents of one chunk.
pub(super) struct BsonDocuments<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> BsonDocuments<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Appends the next document to `out`, checked to its leaves, and returns its place in the chunk; `None` at the
    /// end.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<usize>, Flaw> {
        let (start, rest) = (self.at, &self.bytes[self.at..]);
        if rest.is_empty() {
            return Ok(None);
        }
        let length = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
        let document = match length {
            None => return Err(Flaw::at_end(start, "the input ends in the middle of a document's length")),
            Some(length @ DOCUMENT_BYTES_MIN..=MAX_USER_DOCUMENT_BYTES) => rest.get(..length).ok_or_else(|| {
                Flaw::at_end(start, format!("the input ends in the middle of this document of {length} bytes"))
            })?,
            Some(length) => {
                let reason = format!(
                    "{length} is not the length of a document: {DOCUMENT_BYTES_MIN} to {MAX_USER_DOCUMENT_BYTES}"
                );
                return Err(Flaw::new(start, reason));
            }
        };
        DocumentRef::parse(document).map_err(|error| Flaw::new(start, format!("this document is damaged: {error}")))?;
        out.extend_from_slice(document);
        self.at += document.len();
        Ok(Some(start))
    }
}
