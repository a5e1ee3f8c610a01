//! Zstandard frames that contain their content's length.
//! Source: RFC 8878.

use super::MAX_UNIT_BYTES;
use super::window::Window;
use std::io;
use zstd::zstd_safe::{CParameter, compress_bound, find_frame_compressed_size, get_frame_content_size};

/// Longest header of a frame, in bytes.
const HEADER_BYTES_MAX: usize = 18;
/// Bytes of input by which the search for a frame's end is extended. The search is cheap, because it skips from block
/// to block.
const STEP_BYTES: usize = 256 * 1024;

/// Writes frames.
pub(super) struct Compressor {
    context: zstd::bulk::Compressor<'static>,
}

impl Compressor {
    pub(super) fn new(level: i32) -> io::Result<Self> {
        let mut context = zstd::bulk::Compressor::new(level)?;
        context.set_parameter(CParameter::ChecksumFlag(true))?;
        context.set_parameter(CParameter::ContentSizeFlag(true))?;
        Ok(Self { context })
    }

    /// Writes `raw` as one frame into `out`, which must be empty.
    pub(super) fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.reserve_exact(compress_bound(raw.len()));
        self.context.compress_to_buffer(raw, out).map(drop)
    }
}

/// Length of the window's first frame and of its content, in bytes; `None` if they are unknown without decoding.
pub(super) fn measure(window: &mut Window) -> io::Result<Option<(usize, usize)>> {
    let raw_bytes = match get_frame_content_size(window.require(HEADER_BYTES_MAX)?) {
        Ok(Some(bytes)) if bytes <= MAX_UNIT_BYTES as u64 => bytes as usize,
        _ => return Ok(None),
    };
    let longest = compress_bound(raw_bytes) + HEADER_BYTES_MAX;
    loop {
        if let Ok(frame_bytes) = find_frame_compressed_size(window.available()) {
            return Ok(Some((frame_bytes, raw_bytes)));
        }
        let searched = window.available().len();
        if window.ended() || searched > longest {
            return Ok(None);
        }
        window.require(searched + STEP_BYTES)?;
    }
}

/// Reads frames.
pub(super) struct Decompressor {
    context: zstd::bulk::Decompressor<'static>,
}

impl Decompressor {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { context: zstd::bulk::Decompressor::new()? })
    }

    /// Decodes a frame that [`measure`] accepted into `out`, which must be empty and have room for its content.
    pub(super) fn decompress(&mut self, frame: &[u8], raw_bytes: usize, out: &mut Vec<u8>) -> io::Result<()> {
        if self.context.decompress_to_buffer(frame, out)? == raw_bytes {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a frame's content is not as long as its header says"))
    }
}
