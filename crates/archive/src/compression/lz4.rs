//! LZ4 frames that contain their content's length.
//! Source: "LZ4 Frame Format Description" 1.6.

use super::MAX_UNIT_BYTES;
use super::window::Window;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use std::io::{self, BufRead, Read, Write};

/// First bytes of a frame.
const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Flags of the frame's descriptor.
const BLOCK_CHECKSUMS: u8 = 0b0001_0000;
const CONTENT_SIZE: u8 = 0b0000_1000;
const CONTENT_CHECKSUM: u8 = 0b0000_0100;
const DICTIONARY: u8 = 0b0000_0001;
/// Length of magic number, flags, block size, and the descriptor's checksum.
const HEADER_BYTES_MIN: usize = 7;
/// Length of a header with the content's length.
const HEADER_BYTES_SIZED: usize = HEADER_BYTES_MIN + 8;
/// Bit in a block's length that marks an uncompressed block.
const UNCOMPRESSED: u32 = 0x8000_0000;

/// Appends `raw` as one frame.
pub(super) fn compress(raw: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let info = FrameInfo::new()
        .block_size(BlockSize::Max256KB)
        .block_mode(BlockMode::Independent)
        .content_size(Some(raw.len() as u64))
        .content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(raw)?;
    encoder.finish().map(drop).map_err(io::Error::other)
}

/// A frame's flags, which determine its layout.
#[derive(Clone, Copy)]
struct Flags(u8);

impl Flags {
    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    /// Length of the checksum that the flag announces: four bytes, or 0 if it is not set.
    fn checksum_bytes(self, flag: u8) -> usize {
        if self.has(flag) { 4 } else { 0 }
    }

    fn header_bytes(self) -> usize {
        let content = if self.has(CONTENT_SIZE) { 8 } else { 0 };
        HEADER_BYTES_MIN + content + self.checksum_bytes(DICTIONARY)
    }

    /// Length of the part of a frame that begins with these four bytes, after its header, and whether it is the last.
    fn part(self, prefix: [u8; 4]) -> (usize, FramePart) {
        match u32::from_le_bytes(prefix) {
            0 => (4 + self.checksum_bytes(CONTENT_CHECKSUM), FramePart::Last),
            length => (4 + (length & !UNCOMPRESSED) as usize + self.checksum_bytes(BLOCK_CHECKSUMS), FramePart::Block),
        }
    }
}

/// A part of a frame after its header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FramePart {
    Block,
    Last,
}

/// Length of the window's first frame and of its content, in bytes; `None` if they are unknown without decoding.
pub(super) fn measure(window: &mut Window) -> io::Result<Option<(usize, usize)>> {
    let Some(header) = window.require(HEADER_BYTES_SIZED)?.first_chunk::<HEADER_BYTES_SIZED>() else {
        return Ok(None);
    };
    let flags = Flags(header[4]);
    if header[..4] != MAGIC || flags.header_bytes() != HEADER_BYTES_SIZED || !flags.has(CONTENT_SIZE) {
        return Ok(None);
    }
    let mut content = [0; 8];
    content.copy_from_slice(&header[6..14]);
    let raw_bytes = u64::from_le_bytes(content);
    let longest = MAX_UNIT_BYTES + MAX_UNIT_BYTES / 64;
    let mut end = HEADER_BYTES_SIZED;
    while end <= longest && raw_bytes <= MAX_UNIT_BYTES as u64 {
        let Some(prefix) = window.require(end + 4)?.get(end..).and_then(<[u8]>::first_chunk) else { break };
        let (length, part) = flags.part(*prefix);
        end += length;
        if part == FramePart::Last {
            let whole = window.require(end)?.len() >= end;
            return Ok(whole.then_some((end, raw_bytes as usize)));
        }
    }
    Ok(None)
}

/// Decodes a frame that [`measure`] accepted into `out`, which must be empty and have room for its content.
pub(super) fn decompress(frame: &[u8], raw_bytes: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let mut decoder = FrameDecoder::new(frame);
    loop {
        let block = decoder.fill_buf()?;
        // Checked block by block: a small frame can decode to hundreds of times its length.
        if block.is_empty() || out.len() + block.len() > raw_bytes {
            break;
        }
        out.extend_from_slice(block);
        let length = block.len();
        decoder.consume(length);
    }
    if out.len() == raw_bytes && decoder.fill_buf()?.is_empty() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "a frame's content is not as long as its header says"))
}

/// One frame of unknown length, decoded as it is read.
pub(super) struct Stream<'w> {
    decoder: FrameDecoder<FrameBytes<'w>>,
}

impl<'w> Stream<'w> {
    pub(super) fn new(window: &'w mut Window) -> Self {
        let frame = FrameBytes { window, flags: Flags(0), missing: 0, state: Walk::Header };
        Self { decoder: FrameDecoder::new(frame) }
    }

    /// Offset in the input.
    pub(super) fn input_offset(&self) -> u64 {
        self.decoder.get_ref().window.offset()
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.decoder.read(into)?;
        // The decoder mistakes a block without content for the frame's end.
        if length == 0 && !into.is_empty() && !self.decoder.get_ref().is_at_end() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a block without content"));
        }
        Ok(length)
    }
}

/// The bytes of exactly one frame. The decoder would take an input's end for the frame's end; here it is an error.
struct FrameBytes<'w> {
    window: &'w mut Window,
    flags: Flags,
    /// Unread bytes of the current part.
    missing: usize,
    /// State after the current part.
    state: Walk,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    Header,
    Part,
    Nothing,
}

impl FrameBytes<'_> {
    fn is_at_end(&self) -> bool {
        self.missing == 0 && self.state == Walk::Nothing
    }

    fn next_part(&mut self) -> io::Result<()> {
        let truncated = || io::Error::new(io::ErrorKind::InvalidData, "truncated");
        match self.state {
            Walk::Header => {
                let header = self.window.require(HEADER_BYTES_MIN)?;
                self.flags = Flags(*header.get(4).ok_or_else(truncated)?);
                (self.missing, self.state) = (self.flags.header_bytes(), Walk::Part);
            }
            Walk::Part => {
                let prefix = self.window.require(4)?.first_chunk().ok_or_else(truncated)?;
                let (length, part) = self.flags.part(*prefix);
                self.missing = length;
                self.state = if part == FramePart::Last { Walk::Nothing } else { Walk::Part };
            }
            Walk::Nothing => {}
        }
        Ok(())
    }
}

impl Read for FrameBytes<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.missing == 0 {
            self.next_part()?;
        }
        let wanted = into.len().min(self.missing);
        let length = self.window.read(&mut into[..wanted])?;
        if length == 0 && wanted > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "truncated"));
        }
        self.missing -= length;
        Ok(length)
    }
}
