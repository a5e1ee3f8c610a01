//! Streams of independently compressed units, written and read by several threads.
//!
//! A [`Writer`] makes each unit a frame (or gzip member) of its own that contains its own and its content's length, so
//! a stream can be cut into units without decoding, also from a pipe. Behind the units it writes an
//! [index](crate::index). Other programs read such a stream as one. Memory: a reader has at most 64 MiB in flight,
//! compressed and decoded; a writer 32 MiB before compression; both keep 16 MiB of used buffers. Compressors need
//! memory of their own (zstd from level 17 on some 80 MiB per thread).

mod ahead;
mod budget;
pub(crate) mod gzip;
mod lz4;
mod pool;
mod reader;
mod spare;
mod window;
mod writer;
mod zstandard;

pub use reader::{Reader, open};
pub use writer::{Writer, WrittenUpTo};

/// Longest unit, in bytes before compression.
pub const MAX_UNIT_BYTES: usize = 32 * 1024 * 1024;

/// Compression of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// Gzip members.
    Gzip,
    /// Zstandard frames.
    Zstd {
        /// zstd's level: negative is faster, 0 means its default (3), at most 22. A stream does not contain its level:
        /// detection gives 0.
        level: i32,
    },
    /// LZ4 frames.
    Lz4,
}

impl Compression {
    /// Detects the compression by a stream's first four bytes, not by its name.
    pub fn detect(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A stream may begin with a skippable frame; only zstd's tools write one there.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd { level: 0 },
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            _ => Self::None,
        }
    }

    /// Suffix of file names, with the dot; empty for [`Self::None`].
    pub fn suffix(&self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd { .. } => ".zst",
            Self::Lz4 => ".lz4",
        }
    }
}
