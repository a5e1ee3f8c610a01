//! Reasons why an archive cannot be read further, and the place.

use crate::LengthError;
use bunko_bson::BsonError;
use std::{fmt, io};

/// A defect of an archive, and its place. Offsets are in bytes before compression.
#[derive(Debug)]
pub struct ArchiveError {
    /// Offset at which the damage was found.
    pub offset: u64,
    /// Offset of the damaged block; 0 for the prelude.
    pub block_offset: u64,
    /// Namespace of the block, `database.collection`, if it is known.
    pub namespace: Option<String>,
    /// The kind of defect.
    pub reason: Reason,
}

/// A defect of an archive.
#[derive(Debug)]
pub enum Reason {
    /// Reading failed; the error of a damaged compressed stream gives the place in that stream.
    Io(io::Error),
    /// The archive does not begin with the magic number.
    Magic {
        /// The file's first four bytes, little-endian.
        found: u32,
    },
    /// A version of the format other than 0.1.
    Version {
        /// The version in the header.
        found: String,
    },
    /// The archive ends too early.
    Truncated,
    /// The archive ends before the end of some namespaces.
    Unended {
        /// First of these namespaces, `database.collection`.
        first: String,
        /// Number of namespaces that have not ended.
        count: usize,
    },
    /// A document or header with an impossible length.
    Length(LengthError),
    /// A header longer than any names can make it.
    HeaderTooLong {
        /// Length of the header in bytes.
        length: usize,
    },
    /// The prelude is larger than 128 MiB.
    PreludeTooLong,
    /// A document that does not end with a zero byte.
    Unclosed {
        /// Its last byte.
        found: u8,
    },
    /// A header that is not BSON.
    Bson(BsonError),
    /// A terminator in place of a header.
    MissingHeader,
    /// Other bytes in place of the terminator.
    MissingTerminator {
        /// The found bytes.
        found: u32,
    },
    /// A field that a header must not have.
    UnknownField {
        /// Its name.
        field: String,
    },
    /// A field that a header has twice.
    RepeatedField {
        /// Its name.
        field: String,
    },
    /// A field that a header must have.
    MissingField {
        /// Its name.
        field: &'static str,
    },
    /// A field of the wrong type.
    FieldType {
        /// Its name.
        field: &'static str,
        /// The required type.
        expected: &'static str,
        /// The found type.
        found: &'static str,
    },
    /// A checksum before the namespace's end.
    EarlyCrc {
        /// The checksum in the header.
        crc: u64,
    },
    /// The prelude lists a namespace twice.
    RepeatedNamespace,
    /// A block of a namespace that the prelude does not list.
    UnknownNamespace,
    /// A block of a namespace that has already ended.
    AfterEnd,
    /// The documents differ from those that were written.
    Crc {
        /// The checksum at the namespace's end.
        expected: u64,
        /// The checksum of the documents that were read.
        found: u64,
    },
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid archive at offset {}", self.offset)?;
        match (&self.namespace, self.block_offset) {
            (Some(namespace), at) => write!(f, ", in the block of '{namespace}' at offset {at}: ")?,
            (None, 0) => write!(f, ": ")?,
            (None, at) => write!(f, ", in the block at offset {at}: ")?,
        }
        self.reason.fmt(f)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Magic { found } => {
                write!(f, "begins with {found:#010x}, an archive with {:#010x}", super::MAGIC)
            }
            Self::Version { found } => write!(f, "version '{found}' of the format, expected '{}'", super::VERSION),
            Self::Truncated => f.write_str("truncated"),
            Self::Unended { first, count } => {
                write!(f, "truncated: {count} namespaces of the prelude have not ended, the first is '{first}'")
            }
            Self::Length(error) => error.fmt(f),
            Self::HeaderTooLong { length } => write!(f, "a block's header of {length} bytes"),
            Self::PreludeTooLong => f.write_str("the prelude is longer than 128 MiB"),
            Self::Unclosed { found } => write!(f, "a document ends with {found:#04x}, not zero"),
            Self::Bson(error) => error.fmt(f),
            Self::MissingHeader => f.write_str("a terminator where a header must stand"),
            Self::MissingTerminator { found } => write!(f, "{found:#010x} where the terminator must stand"),
            Self::UnknownField { field } => write!(f, "unknown field '{field}' in a block's header"),
            Self::RepeatedField { field } => write!(f, "field '{field}' twice in a block's header"),
            Self::MissingField { field } => write!(f, "a header lacks '{field}'"),
            Self::FieldType { field, expected, found } => {
                write!(f, "field '{field}' of a header is of type {found}, expected {expected}")
            }
            Self::EarlyCrc { crc } => write!(f, "checksum {crc:#018x} before the namespace's end"),
            Self::RepeatedNamespace => f.write_str("a namespace stands twice in the prelude"),
            Self::UnknownNamespace => f.write_str("the prelude does not name this namespace"),
            Self::AfterEnd => f.write_str("the namespace has ended before"),
            Self::Crc { expected, found } => {
                write!(f, "the documents' checksum is {found:#018x}, the namespace's end says {expected:#018x}")
            }
        }
    }
}

impl std::error::Error for ArchiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            Reason::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<LengthError> for Reason {
    fn from(error: LengthError) -> Self {
        Self::Length(error)
    }
}

impl From<BsonError> for Reason {
    fn from(error: BsonError) -> Self {
        Self::Bson(error)
    }
}
