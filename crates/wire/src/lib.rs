//! MongoDB wire protocol frames: OP_MSG, OP_COMPRESSED and the legacy opcodes. Bytes in, frames out; no sockets.
//!
//! The way of a request: [`split_frame`] cuts one frame off the bytes that have arrived, [`Codec::decompress`] unwraps
//! it if it is OP_COMPRESSED, and [`Message::parse`] or [`Query::parse`] reads it in place. [`write_message`] or
//! [`write_reply`] writes a reply straight into the connection's buffer, after its present contents.
//!
//! **Invariant:** the result of a `parse` function is checked to its leaves, in time linear in the frame's length and
//! without allocating by a length that the peer merely claims. Nothing above this crate checks a frame again.
//!
//! Source of all formats: MongoDB manual, "MongoDB Wire Protocol".
#![forbid(unsafe_code)]

mod compressed;
mod compressor;
mod cursor;
mod error;
mod flags;
mod header;
mod legacy;
mod message;
mod op_code;
mod query;
mod reply;
mod writer;

pub use compressed::Codec;
pub use compressor::{Compressor, negotiate};
pub use error::WireError;
pub use flags::{MessageFlags, QueryFlags, ReplyFlags};
pub use header::{Header, Split, needed_bytes, split_frame};
pub use legacy::{GetMore, KillCursors};
pub use message::{Message, Sequence, SequenceDocuments};
pub use op_code::OpCode;
pub use query::Query;
pub use reply::{Reply, ReplyHead, write_reply};
pub use writer::{FrameStart, begin_message, put_sequence, write_message, write_request};

/// Largest frame, header included, before and after decompression, in bytes: `maxMessageSizeBytes` of `hello`.
/// Source: MongoDB manual, "hello", `maxMessageSizeBytes`.
pub const MAX_FRAME_BYTES: usize = 48_000_000;
/// Length of the header that every frame begins with, in bytes.
pub const HEADER_BYTES: usize = 16;
/// Greatest number of document sequences in one message. The protocol names no limit, but no command takes more than
/// two (`bulkWrite`: `ops` and `nsInfo`), and a frame has room for millions, each of which takes memory.
pub const MAX_SEQUENCES: usize = 1_000;
