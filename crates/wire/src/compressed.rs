//! OP_COMPRESSED: another frame, compressed. A size that a peer claims costs memory in this module only.

use crate::compressor::Compressor;
use crate::cursor::Cursor;
use crate::writer::begin_frame;
use crate::{HEADER_BYTES, Header, MAX_FRAME_BYTES, OpCode, WireError};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Zstandard's own default level, which servers use too.
const ZSTD_LEVEL: i32 = 3;

/// Offset of the opcode in a header, and of the inner frame's length in an OP_COMPRESSED, in bytes.
const OP_CODE_OFFSET: usize = 12;
const CLAIMED_OFFSET: usize = HEADER_BYTES + 4;

/// Compresses and decompresses frames. Keeps the compressors' working memory from one frame to the next.
///
/// That memory can exceed a megabyte after each compressor was used: share one codec per thread, not one per
/// connection. Nothing is allocated before the first use.
#[derive(Default)]
pub struct Codec {
    snappy_encoder: Option<snap::raw::Encoder>,
    zlib_compress: Option<Compress>,
    zlib_decompress: Option<Decompress>,
    zstd_compressor: Option<zstd::bulk::Compressor<'static>>,
    zstd_decompressor: Option<zstd::bulk::Decompressor<'static>>,
}

/// The fields of an OP_COMPRESSED frame. None of them is checked yet.
/// Source: MongoDB wire protocol, "OP_COMPRESSED".
struct Envelope<'a> {
    header: Header,
    op_code: OpCode,
    claimed: i32,
    compressor: Option<Compressor>,
    data: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let (header, content) = Header::of_frame(frame, OpCode::Compressed)?;
        let mut cursor = Cursor::new(content);
        let code = cursor.int32()?;
        let op_code = OpCode::from_code(code).ok_or(WireError::UnknownOpCode(code))?;
        if op_code == OpCode::Compressed {
            return Err(WireError::NestedCompression);
        }
        let claimed = cursor.int32()?;
        let compressor = match cursor.byte()? {
            // `noop`, which every receiver accepts and no side negotiates.
            0 => None,
            id => Some(Compressor::from_id(id).ok_or(WireError::UnknownCompressor(id))?),
        };
        Ok(Self { header, op_code, claimed, compressor, data: cursor.rest() })
    }

    /// Returns the claimed size, if it agrees with everything that is known before decompression.
    fn plausible_size(&self, limit_bytes: usize) -> Result<usize, WireError> {
        let refused = WireError::BadUncompressedSize { claimed: self.claimed };
        let Ok(claimed) = usize::try_from(self.claimed) else { return Err(refused) };
        let possible = match self.compressor {
            None => claimed == self.data.len(),
            Some(compressor) => claimed <= self.data.len().saturating_mul(compressor.expansion_max()),
        };
        // The compressed data may name its size too. Both sizes must agree before any memory is spent.
        let agreed = match self.compressor {
            Some(Compressor::Snappy) => snap::raw::decompress_len(self.data) == Ok(claimed),
            Some(Compressor::Zstd) => match zstd::zstd_safe::get_frame_content_size(self.data) {
                Ok(Some(size)) => size == claimed as u64,
                Ok(None) => true,
                Err(_) => false,
            },
            Some(Compressor::Zlib) | None => true,
        };
        let fits = claimed <= limit_bytes.min(MAX_FRAME_BYTES).saturating_sub(HEADER_BYTES);
        if possible && agreed && fits { Ok(claimed) } else { Err(refused) }
    }
}

impl Codec {
    /// A codec that has allocated nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The compressor of an OP_COMPRESSED frame; `None` if the frame is malformed or of another kind.
    pub fn compressor_of(frame: &[u8]) -> Option<Compressor> {
        Envelope::parse(frame).ok()?.compressor
    }

    /// Claimed length of the frame inside an OP_COMPRESSED, header included, in bytes; 0 for another frame, and while
    /// too few bytes have arrived. `start` begins with the header.
    pub fn inner_bytes(start: &[u8]) -> usize {
        let field =
            |at: usize| start.get(at..at + 4).and_then(|bytes| bytes.first_chunk().copied()).map(i32::from_le_bytes);
        match (field(OP_CODE_OFFSET), field(CLAIMED_OFFSET)) {
            (Some(code), Some(claimed)) if code == OpCode::Compressed.code() => {
                usize::try_from(claimed).map_or(0, |claimed| claimed.saturating_add(HEADER_BYTES).min(MAX_FRAME_BYTES))
            }
            _ => 0,
        }
    }

    /// Replaces `out` by the frame inside the OP_COMPRESSED `frame`, with a header of its own, ready for
    /// [`crate::Message::parse`]. `limit_bytes` (never more than [`MAX_FRAME_BYTES`]) bounds that frame, header
    /// included; no more than the claimed size is ever allocated or written.
    /// # Errors
    /// [`WireError`] if the frame is malformed, the claimed size is impossible or above the limit, or the data does not
    /// expand to exactly that size. `out` is then empty.
    pub fn decompress(&mut self, frame: &[u8], limit_bytes: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.clear();
        let envelope = Envelope::parse(frame)?;
        let claimed = envelope.plausible_size(limit_bytes)?;
        let Header { request_id, response_to, .. } = envelope.header;
        out.reserve(HEADER_BYTES + claimed);
        Header::write(out, (HEADER_BYTES + claimed) as u32, request_id, response_to, envelope.op_code);
        // Zeroed first: a decompressor that stops early leaves zeros, and never old contents of the memory.
        out.resize(HEADER_BYTES + claimed, 0);
        let whole = self.expand(envelope.compressor, envelope.data, &mut out[HEADER_BYTES..]);
        if whole != Some(claimed) {
            out.clear();
            return Err(WireError::BadCompressedData { compressor: envelope.compressor, claimed });
        }
        Ok(())
    }

    /// Decompresses all of `data` into `target`. Returns the number of bytes written; `None` if `data` is corrupt,
    /// expands to more than that, or is followed by other bytes.
    fn expand(&mut self, compressor: Option<Compressor>, data: &[u8], target: &mut [u8]) -> Option<usize> {
        match compressor {
            None => {
                target.copy_from_slice(data);
                Some(data.len())
            }
            Some(Compressor::Snappy) => snap::raw::Decoder::new().decompress(data, target).ok(),
            Some(Compressor::Zlib) => {
                let zlib = self.zlib_decompress.get_or_insert_with(|| Decompress::new(true));
                zlib.reset(true);
                let status = zlib.decompress(data, target, FlushDecompress::Finish).ok()?;
                let complete = status == Status::StreamEnd && zlib.total_in() == data.len() as u64;
                complete.then(|| zlib.total_out() as usize)
            }
            Some(Compressor::Zstd) => {
                let zstd = match &mut self.zstd_decompressor {
                    Some(zstd) => zstd,
                    empty => empty.insert(zstd::bulk::Decompressor::new().ok()?),
                };
                zstd.decompress_to_buffer(data, target).ok()
            }
        }
    }

    /// Appends to `out` the whole frame `frame`, wrapped as OP_COMPRESSED. Returns the new frame's length in bytes.
    ///
    /// Callers must not pass replies that carry secrets, which the compressed length would betray, nor replies to
    /// requests that were not compressed themselves.
    /// # Errors
    /// [`WireError`] if `frame` is not a whole frame or is compressed already, if the compressor fails, or if the
    /// result exceeds [`MAX_FRAME_BYTES`]. `out` is then unchanged.
    pub fn compress(&mut self, frame: &[u8], compressor: Compressor, out: &mut Vec<u8>) -> Result<usize, WireError> {
        let (header, body) = Header::of_whole(frame)?;
        if header.op_code == OpCode::Compressed {
            return Err(WireError::NestedCompression);
        }
        let offset = out.len();
        let start = begin_frame(out, header.request_id, header.response_to, OpCode::Compressed);
        out.extend_from_slice(&header.op_code.code().to_le_bytes());
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.push(compressor.id());
        if self.shrink(compressor, body, out).is_none() {
            out.truncate(offset);
            return Err(WireError::CompressionFailed(compressor));
        }
        start.finish(out)
    }

    /// Appends `body` compressed.
    fn shrink(&mut self, compressor: Compressor, body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        match compressor {
            Compressor::Snappy => {
                out.resize(start + snap::raw::max_compress_len(body.len()), 0);
                let snappy = self.snappy_encoder.get_or_insert_with(snap::raw::Encoder::new);
                let length = snappy.compress(body, &mut out[start..]).ok()?;
                out.truncate(start + length);
            }
            Compressor::Zlib => {
                let zlib = self.zlib_compress.get_or_insert_with(|| Compress::new(Compression::default(), true));
                zlib.reset();
                loop {
                    let rest = &body[zlib.total_in() as usize..];
                    out.reserve(rest.len() / 2 + 64);
                    if zlib.compress_vec(rest, out, FlushCompress::Finish).ok()? == Status::StreamEnd {
                        break;
                    }
                }
            }
            Compressor::Zstd => {
                let zstd = match &mut self.zstd_compressor {
                    Some(zstd) => zstd,
                    empty => empty.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).ok()?),
                };
                out.resize(start + zstd::zstd_safe::compress_bound(body.len()), 0);
                let length = zstd.compress_to_buffer(body, &mut out[start..]).ok()?;
                out.truncate(start + length);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, MessageFlags, write_message};
    use bunko_bson::Writer;

    fn frame(text: &str) -> Vec<u8> {
        let mut frame = Vec::new();
        write_message(&mut frame, 5, 6, MessageFlags::NONE, |out| {
            Writer::new(out).append("text", text).end();
        })
        .expect("short");
        frame
    }

    fn envelope(op_code: i32, claimed: i32, id: u8, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Header::write(&mut out, 25 + data.len() as u32, 5, 6, OpCode::Compressed);
        out.extend_from_slice(&op_code.to_le_bytes());
        out.extend_from_slice(&claimed.to_le_bytes());
        out.push(id);
        out.extend_from_slice(data);
        out
    }

    #[test]
    fn every_compressor_leads_back_again_and_again() {
        let mut codec = Codec::new();
        let mut inner = Vec::new();
        for text in ["", "short", &"long ".repeat(100_000), "short again"] {
            let frame = frame(text);
            for compressor in Compressor::ALL {
                let mut wrapped = vec![1];
                let length = codec.compress(&frame, compressor, &mut wrapped).expect("compresses");
                assert_eq!(length, wrapped.len() - 1);
                codec.decompress(&wrapped[1..], MAX_FRAME_BYTES, &mut inner).expect("decompresses");
                assert_eq!(inner, frame, "{}", compressor.name());
                assert!(Message::parse(&inner).is_ok());
                assert!(text.len() < 1000 || length < frame.len() / 10, "{} compresses", compressor.name());
                let refused = codec.compress(&wrapped[1..], compressor, &mut inner);
                assert_eq!(refused, Err(WireError::NestedCompression));
            }
        }
    }

    #[test]
    fn the_length_inside_is_told_by_the_first_bytes() {
        let plain = frame(&"long ".repeat(1000));
        let mut wrapped = Vec::new();
        Codec::new().compress(&plain, Compressor::Zlib, &mut wrapped).expect("compresses");
        assert_eq!((Codec::inner_bytes(&wrapped), Codec::inner_bytes(&wrapped[..24])), (plain.len(), plain.len()));
        assert_eq!((Codec::inner_bytes(&wrapped[..23]), Codec::inner_bytes(&plain)), (0, 0));
        assert_eq!(Codec::inner_bytes(&envelope(2013, -1, 2, b"")), 0);
        assert_eq!(Codec::inner_bytes(&envelope(2013, i32::MAX, 2, b"")), MAX_FRAME_BYTES);
    }

    #[test]
    fn noop_is_taken() {
        let frame = frame("plain");
        let mut inner = Vec::new();
        let size = frame.len() as i32 - 16;
        let wrapped = envelope(2013, size, 0, &frame[16..]);
        assert_eq!(Codec::new().decompress(&wrapped, MAX_FRAME_BYTES, &mut inner), Ok(()));
        assert_eq!(inner, frame);
        let lying = envelope(2013, size + 1, 0, &frame[16..]);
        let refused = Codec::new().decompress(&lying, MAX_FRAME_BYTES, &mut inner);
        assert_eq!(refused, Err(WireError::BadUncompressedSize { claimed: size + 1 }));
        assert!(inner.is_empty());
    }

    #[test]
    fn an_envelope_holds_a_known_frame_that_is_no_envelope() {
        let refused = |frame: &[u8]| Codec::new().decompress(frame, MAX_FRAME_BYTES, &mut Vec::new()).unwrap_err();
        assert_eq!(refused(&envelope(2012, 1, 0, &[0])), WireError::NestedCompression);
        assert_eq!(refused(&envelope(2011, 1, 0, &[0])), WireError::UnknownOpCode(2011));
        assert_eq!(refused(&envelope(2013, 1, 4, &[0])), WireError::UnknownCompressor(4));
        assert_eq!(refused(&frame("plain")).to_string(), "expected a message of OP_COMPRESSED, not OP_MSG");
        let mut short = envelope(2013, 0, 0, &[]);
        short.pop();
        short[0] -= 1;
        assert_eq!(refused(&short), WireError::Truncated);
    }

    #[test]
    fn the_callers_limit_bounds_the_frame_inside() {
        let frame = frame(&"long ".repeat(1000));
        let mut codec = Codec::new();
        for compressor in Compressor::ALL {
            let mut wrapped = Vec::new();
            codec.compress(&frame, compressor, &mut wrapped).expect("compresses");
            let mut inner = Vec::new();
            assert_eq!(codec.decompress(&wrapped, frame.len(), &mut inner), Ok(()));
            let refused = codec.decompress(&wrapped, frame.len() - 1, &mut inner);
            assert_eq!(refused, Err(WireError::BadUncompressedSize { claimed: frame.len() as i32 - 16 }));
        }
    }
}
