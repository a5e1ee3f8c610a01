//! Streams of independently compressed units, written and read by several threads.
//!
//! A [`Writer`] makes each unit a frame (or gzip member) of its own, which says how long it and its content are; so a
//! stream is cut at its units without decoding, from a pipe as well. Behind the units it puts an [index](crate::index).
//! Every other program reads such a stream as one. Memory: a reader has at most 64 MiB under way, compressed and not; a
//! writer 32 MiB before compression; both keep 16 MiB of used buffers. Compressors take their own (zstd from level 17 on
//! some 80 MiB per thread).

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
pub use writer::{MAX_UNIT_BYTES, Writer, WrittenUpTo};

/// How a stream is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Gzip members.
    Gzip,
    /// Zstandard frames.
    Zstd {
        /// zstd's level: negative is faster, 0 means its default (3), at most 22. A stream does not say which level
        /// made it: detection gives 0.
        level: i32,
    },
    /// LZ4 frames.
    Lz4,
}

impl Compression {
    /// Judges by a stream's first four bytes, whatever its name says.
    pub fn detect(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A stream may begin with a frame to skip; only zstd's tools put one there.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd { level: 0 },
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            _ => Self::None,
        }
    }

    /// What a file's name ends with, dot included; empty for [`Self::None`].
    pub fn suffix(&self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd { .. } => ".zst",
            Self::Lz4 => ".lz4",
        }
    }
}
