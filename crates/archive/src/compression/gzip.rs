//! Gzip members that contain their own length.
//!
//! A member that this crate writes begins with an extra field `BK` of two little-endian numbers: its length in bytes,
//! and its content's. With them a stream can be cut into members without decoding, like bgzip's; other readers ignore
//! the field.
//! Source: RFC 1952, section 2.3.

use super::MAX_UNIT_BYTES;
use super::window::Window;
use flate2::{Compress, Crc, Decompress, FlushCompress, FlushDecompress, Status};
use std::io;

/// First bytes of every member: magic number, deflate, an extra field follows, no time, no hint, system unknown.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255];
/// Name of the extra field.
const SIZES: [u8; 2] = *b"BK";
/// Header, length of all fields (2), the field's name (2) and length (2), two numbers (8).
const HEADER_BYTES: usize = 24;
/// Checksum and length of the content.
const TRAILER_BYTES: usize = 8;
/// zlib's level. With zlib-rs on text, per thread: 119 MB/s at a ratio of 3.25; its default 6 gives 47 MB/s and 3.59,
/// and 1 gives 197 MB/s and 2.21.
const LEVEL: u32 = 3;

/// Writes members.
pub(super) struct Compressor {
    deflate: Compress,
}

impl Compressor {
    pub(super) fn new() -> Self {
        Self { deflate: Compress::new(flate2::Compression::new(LEVEL), false) }
    }

    /// Appends `raw` as one member.
    pub(super) fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        extra_header(out, SIZES, &[0; 8]);
        self.deflate.reset();
        loop {
            // Incompressible content grows by a few bytes per 16 KiB.
            let taken = self.deflate.total_in() as usize;
            out.reserve((raw.len() - taken) / 64 + raw.len() - taken + 1024);
            if self.deflate.compress_vec(&raw[taken..], out, FlushCompress::Finish)? == Status::StreamEnd {
                break;
            }
        }
        trailer(out, raw);
        let length = (out.len() - start) as u32;
        out[start + 16..start + 20].copy_from_slice(&length.to_le_bytes());
        out[start + 20..start + 24].copy_from_slice(&(raw.len() as u32).to_le_bytes());
        Ok(())
    }
}

/// Appends a member's header with one extra field.
fn extra_header(out: &mut Vec<u8>, name: [u8; 2], content: &[u8]) {
    out.extend_from_slice(&HEADER);
    out.extend_from_slice(&(content.len() as u16 + 4).to_le_bytes());
    out.extend_from_slice(&name);
    out.extend_from_slice(&(content.len() as u16).to_le_bytes());
    out.extend_from_slice(content);
}

fn trailer(out: &mut Vec<u8>, raw: &[u8]) {
    let mut crc = Crc::new();
    crc.update(raw);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    out.extend_from_slice(&crc.amount().to_le_bytes());
}

/// Last bytes of an empty member: one empty block, and the trailer of no content.
pub(crate) const EMPTY_END: [u8; 10] = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Bytes of an empty member before its extra field's content.
pub(crate) const EMPTY_BEGIN_BYTES: usize = 16;

/// Appends a member without content whose extra field is `content`, of at most 65,531 bytes.
pub(crate) fn empty_member(out: &mut Vec<u8>, name: [u8; 2], content: &[u8]) {
    extra_header(out, name, content);
    out.extend_from_slice(&EMPTY_END);
}

/// Length of the window's first member and of its content, in bytes. `None` if this crate did not write the member, or
/// it is not whole.
pub(super) fn measure(window: &mut Window) -> io::Result<Option<(usize, usize)>> {
    let Some(header) = window.require(HEADER_BYTES)?.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    if header[..10] != HEADER || header[10..16] != [12, 0, SIZES[0], SIZES[1], 8, 0] {
        return Ok(None);
    }
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
    let (frame_bytes, raw_bytes) = (number(16), number(20));
    let possible = HEADER_BYTES + TRAILER_BYTES < frame_bytes
        && frame_bytes <= MAX_UNIT_BYTES + MAX_UNIT_BYTES / 64
        && raw_bytes <= MAX_UNIT_BYTES;
    let whole = possible && window.require(frame_bytes)?.len() >= frame_bytes;
    Ok(whole.then_some((frame_bytes, raw_bytes)))
}

/// Reads members.
pub(super) struct Decompressor {
    inflate: Decompress,
}

impl Decompressor {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new(false) }
    }

    /// Decodes a member that [`measure`] accepted into `out`, which must have room for its content and one byte.
    pub(super) fn decompress(&mut self, frame: &[u8], raw_bytes: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let damaged = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let Some((body, trailer)) = frame.get(HEADER_BYTES..).and_then(<[u8]>::split_last_chunk::<TRAILER_BYTES>)
        else {
            return damaged("shorter than a member's header");
        };
        self.inflate.reset(false);
        let status = self.inflate.decompress_vec(body, out, FlushDecompress::Finish)?;
        if status != Status::StreamEnd || self.inflate.total_in() != body.len() as u64 || out.len() != raw_bytes {
            return damaged("a member's lengths are not what its header says");
        }
        let mut crc = Crc::new();
        crc.update(out);
        let mut expected = [0; TRAILER_BYTES];
        expected[..4].copy_from_slice(&crc.sum().to_le_bytes());
        expected[4..].copy_from_slice(&crc.amount().to_le_bytes());
        if expected == *trailer { Ok(()) } else { damaged("a member's checksum does not match its content") }
    }
}
