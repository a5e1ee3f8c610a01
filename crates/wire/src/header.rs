//! The header of frames, and cutting frames off a stream.

use crate::{HEADER_BYTES, MAX_FRAME_BYTES, OpCode, WireError};

/// The first 16 bytes of a frame, little-endian on the wire.
/// Source: MongoDB wire protocol, "Standard Message Header".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the whole frame, this header included, in bytes.
    pub length: u32,
    /// Chosen by the sender; the reply names it.
    pub request_id: i32,
    /// The request that this frame answers; 0 in requests.
    pub response_to: i32,
    /// The kind of message that follows the header.
    pub op_code: OpCode,
}

impl Header {
    /// Reads a header whose `length` was checked against the limit before.
    #[inline]
    fn read(bytes: [u8; HEADER_BYTES], length: usize) -> Result<Self, WireError> {
        let field =
            |start: usize| i32::from_le_bytes([bytes[start], bytes[start + 1], bytes[start + 2], bytes[start + 3]]);
        let code = field(12);
        Ok(Self {
            length: length as u32,
            request_id: field(4),
            response_to: field(8),
            op_code: OpCode::from_code(code).ok_or(WireError::UnknownOpCode(code))?,
        })
    }

    /// Reads the header of a frame whose first bytes have arrived.
    /// # Errors
    /// [`WireError::Truncated`] if the header is not whole; [`WireError::BadLength`], [`WireError::UnknownOpCode`].
    pub fn of_start(start: &[u8]) -> Result<Self, WireError> {
        match (frame_length(start, MAX_FRAME_BYTES)?, start.first_chunk::<HEADER_BYTES>()) {
            (Some(length), Some(&bytes)) => Self::read(bytes, length),
            _ => Err(WireError::Truncated),
        }
    }

    /// Reads the header of a whole frame, and returns the bytes that follow it.
    /// # Errors
    /// If the frame is not exactly as long as it says.
    #[inline]
    pub fn of_whole(frame: &[u8]) -> Result<(Self, &[u8]), WireError> {
        match split_frame(frame, MAX_FRAME_BYTES)? {
            Some((header, body, consumed)) if consumed == frame.len() => Ok((header, body)),
            Some((header, _, _)) => {
                Err(WireError::BadLength { length: i64::from(header.length), limit_bytes: frame.len() })
            }
            None => Err(WireError::Truncated),
        }
    }

    /// As [`Self::of_whole`], for a frame with the opcode `expected`.
    /// # Errors
    /// [`WireError::WrongOpCode`] if the frame has another opcode.
    #[inline]
    pub(crate) fn of_frame(frame: &[u8], expected: OpCode) -> Result<(Self, &[u8]), WireError> {
        let (header, body) = Self::of_whole(frame)?;
        if header.op_code != expected {
            return Err(WireError::WrongOpCode { expected, found: header.op_code });
        }
        Ok((header, body))
    }

    /// Appends a header; [`crate::FrameStart::finish`] fills in the length.
    #[inline]
    pub(crate) fn write(out: &mut Vec<u8>, length: u32, request_id: i32, response_to: i32, op_code: OpCode) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4..8].copy_from_slice(&request_id.to_le_bytes());
        bytes[8..12].copy_from_slice(&response_to.to_le_bytes());
        bytes[12..].copy_from_slice(&op_code.code().to_le_bytes());
        out.extend_from_slice(&bytes);
    }
}

/// The claimed length, if its four bytes have arrived and it lies within `limit_bytes`.
#[inline]
fn frame_length(input: &[u8], limit_bytes: usize) -> Result<Option<usize>, WireError> {
    let Some(&prefix) = input.first_chunk::<4>() else { return Ok(None) };
    let claimed = i32::from_le_bytes(prefix);
    let limit_bytes = limit_bytes.min(MAX_FRAME_BYTES);
    match usize::try_from(claimed) {
        Ok(length) if (HEADER_BYTES..=limit_bytes).contains(&length) => Ok(Some(length)),
        _ => Err(WireError::BadLength { length: i64::from(claimed), limit_bytes }),
    }
}

/// A frame cut off a stream: its header, the bytes that follow the header, and the whole frame's length in bytes.
pub type Split<'a> = (Header, &'a [u8], usize);

/// Cuts one frame off the front of `input`. Returns its header, the bytes that follow the header, and the frame's
/// length in bytes, which the caller then drops from `input`. `None`: not all of the frame has arrived.
///
/// A frame longer than `limit_bytes` (never more than [`MAX_FRAME_BYTES`]; less for a peer that has not authenticated)
/// is refused by its first four bytes, and an unknown opcode by the header, before the rest arrives.
/// # Errors
/// [`WireError::BadLength`] outside 16..=`limit_bytes`, [`WireError::UnknownOpCode`].
#[inline]
pub fn split_frame(input: &[u8], limit_bytes: usize) -> Result<Option<Split<'_>>, WireError> {
    let Some(length) = frame_length(input, limit_bytes)? else { return Ok(None) };
    let Some(&bytes) = input.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let header = Header::read(bytes, length)?;
    Ok(input.get(HEADER_BYTES..length).map(|body| (header, body, length)))
}

/// Total length of the frame at the front of `input`, in bytes, so that a reader can make room once. `None` while that
/// is unknown, or if [`split_frame`] will refuse the length.
#[inline]
pub fn needed_bytes(input: &[u8]) -> Option<usize> {
    frame_length(input, MAX_FRAME_BYTES).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: i32, op_code: i32) -> Vec<u8> {
        [length, 7, 3, op_code].iter().flat_map(|field| field.to_le_bytes()).collect()
    }

    #[test]
    fn a_frame_is_cut_off_once_it_is_complete() {
        let mut input = header(18, 2013);
        input.extend_from_slice(&[1, 2, 99]);
        for arrived in 0..18 {
            assert_eq!(split_frame(&input[..arrived], MAX_FRAME_BYTES), Ok(None));
            assert_eq!(needed_bytes(&input[..arrived]), (arrived >= 4).then_some(18));
        }
        let (header, body, consumed) = split_frame(&input, MAX_FRAME_BYTES).expect("valid").expect("complete");
        assert_eq!(
            (Header::of_start(&input[..16]), Header::of_start(&input[..15])),
            (Ok(header), Err(WireError::Truncated))
        );
        assert_eq!(header, Header { length: 18, request_id: 7, response_to: 3, op_code: OpCode::Message });
        assert_eq!((body, consumed), (&[1, 2][..], 18));
    }

    #[test]
    fn a_bad_length_is_refused_by_its_four_bytes() {
        for length in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
            let input = length.to_le_bytes();
            let refused = WireError::BadLength { length: i64::from(length), limit_bytes: MAX_FRAME_BYTES };
            assert_eq!(split_frame(&input, usize::MAX), Err(refused));
            assert_eq!(needed_bytes(&input), None);
        }
        assert_eq!(split_frame(&48_000_000_i32.to_le_bytes(), usize::MAX), Ok(None));
        let refused = WireError::BadLength { length: 101, limit_bytes: 100 };
        assert_eq!(split_frame(&101_i32.to_le_bytes(), 100), Err(refused));
    }

    #[test]
    fn an_unknown_opcode_is_refused_by_the_header() {
        assert_eq!(split_frame(&header(1000, 2010), MAX_FRAME_BYTES), Err(WireError::UnknownOpCode(2010)));
        for code in [1, 2001, 2002, 2004, 2005, 2006, 2007, 2012, 2013] {
            let op_code = OpCode::from_code(code).expect("known");
            assert_eq!(op_code.code(), code);
            let input = header(16, code);
            assert!(
                matches!(split_frame(&input, MAX_FRAME_BYTES), Ok(Some((found, [], 16))) if found.op_code == op_code)
            );
        }
    }
}
