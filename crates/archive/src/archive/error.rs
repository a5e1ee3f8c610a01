//! Why an archive cannot be read on, and where.

use crate::LengthError;
use bunko_bson::BsonError;
use std::{fmt, io};

/// What is wrong with an archive, and where it stands. Offsets are in bytes before compression.
#[derive(Debug)]
pub struct ArchiveError {
    /// Where the damage was found.
    pub offset: u64,
    /// Where the damaged block (or the prelude: 0) begins.
    pub block_offset: u64,
    /// Whose block it is, `database.collection`, where that much is known.
    pub namespace: Option<String>,
    /// What was found.
    pub reason: Reason,
}

/// What is wrong with an archive.
#[derive(Debug)]
pub enum Reason {
    /// Reading failed; the error of a damaged compressed stream says where in that.
    Io(io::Error),
    /// Does not begin with the magic number.
    Magic {
        /// What it begins with.
        found: u32,
    },
    /// A version of the format other than 0.1.
    Version {
        /// What the header says.
        found: String,
    },
    /// The archive ends where more must follow.
    Truncated,
    /// The archive ends before the end of some namespaces.
    Unended {
        /// One of them, `database.collection`.
        first: String,
        /// How many.
        count: usize,
    },
    /// A document, or header, whose length cannot be.
    Length(LengthError),
    /// A header longer than names can make it, in bytes.
    HeaderTooLong {
        /// Its length.
        length: usize,
    },
    /// The prelude is larger than 128 MiB.
    PreludeTooLong,
    /// A document that does not end with a zero byte.
    Unclosed {
        /// What it ends with.
        found: u8,
    },
    /// A header that is not BSON.
    Bson(BsonError),
    /// A terminator where a header must stand.
    MissingHeader,
    /// Something else where the terminator must stand.
    MissingTerminator {
        /// What stands there.
        found: u32,
    },
    /// A field that a header may not have.
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
    /// A field of another type.
    FieldType {
        /// Its name.
        field: &'static str,
        /// The type it should have.
        expected: &'static str,
        /// The type it has.
        found: &'static str,
    },
    /// A checksum before the namespace's end.
    EarlyCrc {
        /// What the header says.
        crc: u64,
    },
    /// A namespace twice in the prelude.
    RepeatedNamespace,
    /// A block of a namespace that the prelude does not name.
    UnknownNamespace,
    /// A block of a namespace that has ended.
    AfterEnd,
    /// The documents are not those that were written.
    Crc {
        /// What the namespace's end says.
        expected: u64,
        /// Of the documents that were read.
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
