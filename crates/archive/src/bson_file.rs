//! A file of documents, one after another: a collection of a directory dump, or an oplog.

use crate::documents::{CutError, CutReason, Cutter, Stop};
use crate::{Documents, LengthError, PART_BYTES};
use std::fmt;
use std::io::{self, BufRead};

/// Reads documents in parts.
pub struct Reader<R: BufRead> {
    cutter: Cutter<R>,
    part_bytes: usize,
}

impl<R: BufRead> Reader<R> {
    /// Begins at `input`'s first byte.
    pub fn new(input: R) -> Self {
        Self { cutter: Cutter::new(input), part_bytes: PART_BYTES }
    }

    /// Sets the most bytes in one part, unless a single document is longer. The default is [`PART_BYTES`].
    #[must_use]
    pub fn with_part_bytes(mut self, bytes: usize) -> Self {
        self.part_bytes = bytes;
        self
    }

    /// The next documents, in `buffer`; `None` at the end.
    /// # Errors
    /// [`BsonFileError`] if a length is wrong, the file ends inside a document, or reading fails. Earlier parts were
    /// returned, but documents of the same part before the error are lost.
    pub fn next(&mut self, buffer: Vec<u8>) -> Result<Option<Documents>, BsonFileError> {
        let mut documents = Documents::reusing(buffer);
        match self.cutter.documents(&mut documents, self.part_bytes)? {
            Stop::Limit => {}
            Stop::EndOfInput if documents.count == 0 => return Ok(None),
            Stop::EndOfInput => {}
            // Only archives have terminators.
            Stop::Terminator => {
                let reason = BsonFileReason::Length(LengthError { length: -1 });
                return Err(BsonFileError { offset: self.cutter.offset() - 4, reason });
            }
        }
        Ok(Some(documents))
    }

    /// Number of bytes read so far, before compression.
    pub fn offset(&self) -> u64 {
        self.cutter.offset()
    }

    /// The input, for its progress.
    pub fn get_ref(&self) -> &R {
        self.cutter.get_ref()
    }
}

/// Reason why a file of documents cannot be read further, and the place.
#[derive(Debug)]
pub struct BsonFileError {
    /// Offset in bytes, before compression.
    pub offset: u64,
    /// The kind of defect.
    pub reason: BsonFileReason,
}

/// A defect of a file of documents.
#[derive(Debug)]
pub enum BsonFileReason {
    /// Reading failed; the error of a damaged compressed stream gives the place in that stream.
    Io(io::Error),
    /// A document with an impossible length.
    Length(LengthError),
    /// A document that does not end with a zero byte.
    Unclosed {
        /// The document's last byte.
        found: u8,
    },
    /// The file ends inside a document.
    Truncated,
}

impl From<CutError> for BsonFileError {
    fn from(error: CutError) -> Self {
        let reason = match error.reason {
            CutReason::Io(error) => BsonFileReason::Io(error),
            CutReason::Length(error) => BsonFileReason::Length(error),
            CutReason::Unclosed(found) => BsonFileReason::Unclosed { found },
            CutReason::Truncated => BsonFileReason::Truncated,
        };
        Self { offset: error.offset, reason }
    }
}

impl fmt::Display for BsonFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid BSON file at offset {}: ", self.offset)?;
        match &self.reason {
            BsonFileReason::Io(error) => error.fmt(f),
            BsonFileReason::Length(error) => error.fmt(f),
            BsonFileReason::Unclosed { found } => write!(f, "a document ends with {found:#04x}, not zero"),
            BsonFileReason::Truncated => f.write_str("truncated inside a document"),
        }
    }
}

impl std::error::Error for BsonFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            BsonFileReason::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;
    use proptest::prelude::*;
    use std::io::BufReader;

    /// A document for each length, with a string of that length.
    fn file(lengths: &[usize]) -> Vec<u8> {
        let document = |&length: &usize| DocumentBuf::new().with("s", &"x".repeat(length)).into_bytes();
        lengths.iter().flat_map(document).collect()
    }

    fn read(mut reader: Reader<impl BufRead>) -> Result<Vec<Documents>, BsonFileError> {
        let mut parts = Vec::new();
        while let Some(documents) = reader.next(Vec::new())? {
            parts.push(documents);
        }
        Ok(parts)
    }

    proptest! {
        #[test]
        fn documents_survive_every_buffer_and_limit(
            lengths in proptest::collection::vec(0_usize..300, 0..40), buffer in 1_usize..500, limit in 1_usize..500,
        ) {
            let bytes = file(&lengths);
            let reader = Reader::new(BufReader::with_capacity(buffer, &bytes[..])).with_part_bytes(limit);
            let parts = read(reader).expect("whole");
            for part in &parts {
                prop_assert!(part.count == 1 || part.bytes.len() <= limit);
                prop_assert_eq!(part.iter().count(), part.count);
            }
            prop_assert_eq!(parts.iter().map(|part| part.count).sum::<usize>(), lengths.len());
            prop_assert_eq!(parts.into_iter().flat_map(|part| part.bytes).collect::<Vec<_>>(), bytes);
        }

        #[test]
        fn any_bytes_end_in_documents_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(parts) = read(Reader::new(&bytes[..])) {
                prop_assert_eq!(parts.into_iter().flat_map(|part| part.bytes).collect::<Vec<_>>(), bytes);
            }
        }
    }

    #[test]
    fn damage_is_named_with_its_offset() {
        let whole = file(&[3, 4]);
        let first = file(&[3]).len();
        let error = |bytes: &[u8]| read(Reader::new(bytes)).expect_err("damaged").to_string();
        for end in (1..whole.len()).filter(|&end| end != first) {
            let message = format!("invalid BSON file at offset {end}: truncated inside a document");
            assert_eq!(error(&whole[..end]), message);
        }
        let mut damaged = whole.clone();
        damaged[first..first + 4].copy_from_slice(&(17_i32 << 20).to_le_bytes());
        let message = "a document says that it is 17825792 bytes long, not 5 to 16793600";
        assert_eq!(error(&damaged), format!("invalid BSON file at offset {first}: {message}"));
        damaged[first..first + 4].fill(0xff);
        assert!(error(&damaged).contains("-1 bytes long"), "{}", error(&damaged));
        damaged = whole;
        damaged[first - 1] = 7;
        assert_eq!(
            error(&damaged),
            format!("invalid BSON file at offset {}: a document ends with 0x07, not zero", first - 1)
        );
    }
}
