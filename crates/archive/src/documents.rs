//! Documents one after another, separated by their lengths.

use bunko_bson::{DocumentRef, MAX_INTERNAL_DOCUMENT_BYTES};
use std::fmt;
use std::io::{self, BufRead};

/// Longest document that a dump may hold, in bytes: the longest that a server stores, with the server's own fields.
pub const MAX_DOCUMENT_BYTES: usize = MAX_INTERNAL_DOCUMENT_BYTES;
/// Default number of bytes in one part of documents.
pub const PART_BYTES: usize = 4 * 1024 * 1024;
/// Length of a document without fields, in bytes.
const MIN_DOCUMENT_BYTES: usize = 5;
/// Bytes in place of a document's length that end a block of an archive.
pub(crate) const TERMINATOR: [u8; 4] = [0xff; 4];

/// Whole encoded documents one after another. Their lengths are checked, their contents are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documents {
    /// The encoded documents.
    pub bytes: Vec<u8>,
    /// Number of documents.
    pub count: usize,
}

impl Documents {
    /// Makes a list without documents that uses the memory of `buffer`.
    pub(crate) fn reusing(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { bytes: buffer, count: 0 }
    }

    /// The documents in their order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(each_document(&self.bytes))
    }
}

impl<'a> IntoIterator for &'a Documents {
    type Item = DocumentRef<'a>;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterates over documents by their lengths.
#[derive(Clone, Debug)]
pub struct Iter<'a>(EachDocument<'a>);

impl<'a> Iterator for Iter<'a> {
    type Item = DocumentRef<'a>;

    fn next(&mut self) -> Option<DocumentRef<'a>> {
        self.0.next().map(DocumentRef::trusted)
    }
}

/// Iterates over encoded documents one after another, by their lengths. Ends at the first that is not whole or has
/// an impossible length.
pub fn each_document(bytes: &[u8]) -> EachDocument<'_> {
    EachDocument { rest: bytes }
}

/// The iterator of [`each_document`].
#[derive(Clone, Debug)]
pub struct EachDocument<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for EachDocument<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (document, rest) = split_document(self.rest).ok()??;
        self.rest = rest;
        Some(document)
    }
}

/// A document with an impossible length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthError {
    /// The length in its first four bytes.
    pub length: i32,
}

impl fmt::Display for LengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a document says that it is {} bytes long, not {MIN_DOCUMENT_BYTES} to {MAX_DOCUMENT_BYTES}",
            self.length
        )
    }
}

impl std::error::Error for LengthError {}

/// Checks a document's length, from its first four bytes, against the limits.
fn length(prefix: [u8; 4]) -> Result<usize, LengthError> {
    let length = i32::from_le_bytes(prefix);
    usize::try_from(length)
        .ok()
        .filter(|length| (MIN_DOCUMENT_BYTES..=MAX_DOCUMENT_BYTES).contains(length))
        .ok_or(LengthError { length })
}

/// A document, and the bytes after it.
pub type Split<'a> = (&'a [u8], &'a [u8]);

/// Splits the first document off; `None` if `bytes` ends before it does, or is empty.
/// # Errors
/// [`LengthError`] if the first four bytes cannot be a document's length.
pub fn split_document(bytes: &[u8]) -> Result<Option<Split<'_>>, LengthError> {
    let Some(prefix) = bytes.first_chunk() else { return Ok(None) };
    Ok(bytes.split_at_checked(length(*prefix)?))
}

/// Separates a stream into documents, and copies each byte once.
pub(crate) struct Cutter<R> {
    input: R,
    /// Number of bytes consumed from `input`.
    taken: u64,
    /// Length prefix of a document that exceeded the limit; its other bytes are still in the input.
    pending: Option<[u8; 4]>,
}

/// Reason why a [`Cutter`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The next document would have exceeded the limit.
    Limit,
    /// Four bytes `ff` in place of a length, which were consumed.
    Terminator,
    /// The input ends after a document.
    EndOfInput,
}

/// Reason why a stream cannot be cut further, and the place.
#[derive(Debug)]
pub(crate) struct CutError {
    pub(crate) offset: u64,
    pub(crate) reason: CutReason,
}

/// Reason why a stream cannot be cut further.
#[derive(Debug)]
pub(crate) enum CutReason {
    Io(io::Error),
    Length(LengthError),
    /// A document's last byte, which is not zero.
    Unclosed(u8),
    Truncated,
}

impl<R: BufRead> Cutter<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, taken: 0, pending: None }
    }

    pub(crate) fn get_ref(&self) -> &R {
        &self.input
    }

    /// Offset of the next document, in bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.taken - if self.pending.is_some() { 4 } else { 0 }
    }

    /// Takes documents up to `limit` bytes; a longer one is taken alone.
    pub(crate) fn documents(&mut self, into: &mut Documents, limit: usize) -> Result<Stop, CutError> {
        loop {
            if self.pending.is_none() {
                self.whole_documents(into, limit)?;
            }
            // The next bytes are anything else: a document split by the buffer's end or beyond the limit, the
            // terminator, or damage.
            let prefix = match self.prefix()? {
                None => return Ok(Stop::EndOfInput),
                Some(TERMINATOR) => return Ok(Stop::Terminator),
                Some(prefix) => prefix,
            };
            let length = self.length(prefix)?;
            if into.count > 0 && into.bytes.len() + length > limit {
                self.pending = Some(prefix);
                return Ok(Stop::Limit);
            }
            self.body(prefix, length, &mut into.bytes)?;
            into.count += 1;
        }
    }

    /// Takes one document of at most `max_bytes`, or a terminator.
    pub(crate) fn one(&mut self, into: &mut Vec<u8>, max_bytes: usize) -> Result<One, CutError> {
        let prefix = match self.prefix()? {
            None => return Ok(One::EndOfInput),
            Some(TERMINATOR) => return Ok(One::Terminator),
            Some(prefix) => prefix,
        };
        let length = self.length(prefix)?;
        if length > max_bytes {
            return Ok(One::TooLong { length });
        }
        self.body(prefix, length, into)?;
        Ok(One::Document)
    }

    /// Takes the next four bytes: a document's length, or a terminator. `None` at the input's end.
    pub(crate) fn prefix(&mut self) -> Result<Option<[u8; 4]>, CutError> {
        if let Some(prefix) = self.pending.take() {
            return Ok(Some(prefix));
        }
        let mut prefix = [0; 4];
        let mut filled = 0;
        while filled < prefix.len() {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return if filled == 0 { Ok(None) } else { Err(self.error(CutReason::Truncated)) };
            }
            let length = buffer.len().min(prefix.len() - filled);
            prefix[filled..filled + length].copy_from_slice(&buffer[..length]);
            filled += length;
            self.consume(length);
        }
        Ok(Some(prefix))
    }

    /// Copies the documents that are whole in the input's buffer, all at once.
    fn whole_documents(&mut self, into: &mut Documents, limit: usize) -> Result<(), CutError> {
        let room = limit.saturating_sub(into.bytes.len());
        let buffer = self.fill()?;
        let (mut bytes, mut count) = (0, 0);
        while let Ok(Some((document, _))) = split_document(&buffer[bytes..]) {
            if bytes + document.len() > room || document.last() != Some(&0) {
                break;
            }
            bytes += document.len();
            count += 1;
        }
        into.bytes.extend_from_slice(&buffer[..bytes]);
        into.count += count;
        self.consume(bytes);
        Ok(())
    }

    /// Copies a document whose first four bytes were taken. The buffer grows with the bytes that are read, not with the
    /// length that the document claims.
    fn body(&mut self, prefix: [u8; 4], length: usize, into: &mut Vec<u8>) -> Result<(), CutError> {
        into.extend_from_slice(&prefix);
        let mut missing = length - prefix.len();
        while missing > 0 {
            let buffer = self.fill()?;
            if buffer.is_empty() {
                return Err(self.error(CutReason::Truncated));
            }
            let piece = buffer.len().min(missing);
            into.extend_from_slice(&buffer[..piece]);
            missing -= piece;
            self.consume(piece);
        }
        match into.last() {
            Some(&found) if found != 0 => Err(CutError { offset: self.taken - 1, reason: CutReason::Unclosed(found) }),
            _ => Ok(()),
        }
    }

    fn length(&self, prefix: [u8; 4]) -> Result<usize, CutError> {
        length(prefix).map_err(|error| CutError { offset: self.taken - 4, reason: CutReason::Length(error) })
    }

    fn fill(&mut self) -> Result<&[u8], CutError> {
        // Called twice, because the first call's borrow would outlive the loop.
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(CutReason::Io(error))),
            }
        }
        let offset = self.taken;
        self.input.fill_buf().map_err(|error| CutError { offset, reason: CutReason::Io(error) })
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.taken += bytes as u64;
    }

    fn error(&self, reason: CutReason) -> CutError {
        CutError { offset: self.taken, reason }
    }
}

/// Result of [`Cutter::one`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum One {
    Document,
    /// The document exceeds the limit; only its length was consumed.
    TooLong {
        length: usize,
    },
    Terminator,
    EndOfInput,
}
