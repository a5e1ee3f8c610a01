//! Reasons to refuse a frame.

use crate::{Compressor, MAX_SEQUENCES, OpCode};
use bunko_bson::BsonError;
use std::fmt;

/// Why a frame is refused. There is no reply to such a frame: the two sides no longer agree where the next one begins,
/// so the connection is closed. They still agree after [`Self::Document`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A frame's length is below the header's, above the limit, or not the number of bytes given.
    BadLength {
        /// The length that the header claims, in bytes.
        length: i64,
        /// The greatest length allowed, in bytes.
        limit_bytes: usize,
    },
    /// There is no such opcode.
    UnknownOpCode(i32),
    /// The frame holds another kind of message than the one asked for.
    WrongOpCode {
        /// The opcode that the caller parses.
        expected: OpCode,
        /// The opcode in the header.
        found: OpCode,
    },
    /// The frame ends within a field.
    Truncated,
    /// Bytes are left over after the last field.
    TrailingBytes {
        /// Number of bytes left over.
        count: usize,
    },
    /// Required flag bits (0 to 15 of OP_MSG) whose meaning is unknown. Holds all flags as sent.
    UnknownFlags(u32),
    /// A section of OP_MSG that is neither a body (0) nor a document sequence (1).
    UnknownSection(u8),
    /// OP_MSG without a body section.
    MissingBody,
    /// OP_MSG with more than one body section.
    SecondBody,
    /// More than [`MAX_SEQUENCES`] document sequences.
    TooManySequences,
    /// Two sequences have the same name.
    DuplicateSequence {
        /// The name.
        identifier: String,
    },
    /// A sequence and a field of the body have the same name.
    SequenceInBody {
        /// The name.
        identifier: String,
    },
    /// A collection's or sequence's name lacks its closing zero or is not UTF-8.
    BadName,
    /// A document is not well formed.
    Document(BsonError),
    /// A length or count inside a frame that is impossible.
    BadCount(i32),
    /// The checksum does not match the frame's bytes.
    BadChecksum {
        /// The checksum in the frame.
        found: u32,
        /// The checksum of the frame's bytes.
        computed: u32,
    },
    /// There is no such compressor.
    UnknownCompressor(u8),
    /// OP_COMPRESSED inside OP_COMPRESSED.
    NestedCompression,
    /// The claimed uncompressed size is negative, above the limit, or more than the compressed bytes can expand to.
    BadUncompressedSize {
        /// The claimed size, without the header, in bytes.
        claimed: i32,
    },
    /// The data is corrupt, or does not expand to exactly the claimed size.
    BadCompressedData {
        /// The compressor that refused it; `None` for `noop`.
        compressor: Option<Compressor>,
        /// The claimed size, without the header, in bytes.
        claimed: usize,
    },
    /// A compressor failed to compress a frame of Bunko's own.
    CompressionFailed(Compressor),
}

impl From<BsonError> for WireError {
    fn from(error: BsonError) -> Self {
        Self::Document(error)
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadLength { length, limit_bytes } => {
                write!(f, "message length {length} is not between 16 and {limit_bytes} or not that of the message")
            }
            Self::UnknownOpCode(code) => write!(f, "unknown opcode {code}"),
            Self::WrongOpCode { expected, found } => write!(f, "expected a message of {expected}, not {found}"),
            Self::Truncated => write!(f, "the message ends within a field"),
            Self::TrailingBytes { count } => write!(f, "{count} bytes after the message's last field"),
            Self::UnknownFlags(flags) => write!(f, "OP_MSG flags {flags:#010x} hold an unknown required bit"),
            Self::UnknownSection(kind) => write!(f, "unknown OP_MSG section kind {kind}"),
            Self::MissingBody => write!(f, "OP_MSG without a body section"),
            Self::SecondBody => write!(f, "OP_MSG with more than one body section"),
            Self::TooManySequences => write!(f, "OP_MSG with more than {MAX_SEQUENCES} document sequences"),
            Self::DuplicateSequence { identifier } => write!(f, "duplicate document sequence: {identifier}"),
            Self::SequenceInBody { identifier } => {
                write!(f, "duplicate field between body and document sequence: {identifier}")
            }
            Self::BadName => write!(f, "a name is not a zero-terminated UTF-8 string"),
            Self::Document(error) => error.fmt(f),
            Self::BadCount(count) => write!(f, "a length or count inside the message is wrong: {count}"),
            Self::BadChecksum { found, computed } => {
                write!(f, "checksum {found:#010x} does not match the message's {computed:#010x}")
            }
            Self::UnknownCompressor(id) => write!(f, "unknown compressor id {id}"),
            Self::NestedCompression => write!(f, "OP_COMPRESSED within OP_COMPRESSED"),
            Self::BadUncompressedSize { claimed } => write!(f, "impossible uncompressed size {claimed}"),
            Self::BadCompressedData { compressor, claimed } => {
                let name = compressor.map_or("noop", Compressor::name);
                write!(f, "{name} data is corrupt or does not expand to the {claimed} bytes claimed")
            }
            Self::CompressionFailed(compressor) => write!(f, "{} failed to compress a message", compressor.name()),
        }
    }
}

impl std::error::Error for WireError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Document(error) = self { Some(error) } else { None }
    }
}
