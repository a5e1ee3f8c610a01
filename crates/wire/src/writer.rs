//! Writes frames straight into a connection's buffer, after its present contents.

use crate::{HEADER_BYTES, Header, MAX_FRAME_BYTES, MessageFlags, OpCode, WireError};

/// A frame that was begun in a buffer and has no length yet.
#[derive(Debug)]
#[must_use = "a frame without its length breaks the connection"]
pub struct FrameStart {
    offset: usize,
    trailer: Trailer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trailer {
    Nothing,
    Checksum,
}

impl FrameStart {
    /// Removes the frame: the buffer is as it was before.
    pub fn discard(self, out: &mut Vec<u8>) {
        out.truncate(self.offset);
    }

    /// Fills in the length, and the checksum if the flags promise one. Returns the frame's length in bytes.
    /// # Errors
    /// [`WireError::BadLength`] above [`MAX_FRAME_BYTES`]; the buffer is then as it was before the frame.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<usize, WireError> {
        let trailer_bytes = if self.trailer == Trailer::Checksum { size_of::<u32>() } else { 0 };
        let length = out.len() - self.offset + trailer_bytes;
        if length > MAX_FRAME_BYTES {
            out.truncate(self.offset);
            return Err(WireError::BadLength { length: length as i64, limit_bytes: MAX_FRAME_BYTES });
        }
        out[self.offset..self.offset + 4].copy_from_slice(&(length as u32).to_le_bytes());
        if self.trailer == Trailer::Checksum {
            let checksum = bunko_checksum::crc32c(&out[self.offset..]);
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        Ok(length)
    }
}

/// Appends a header whose length [`FrameStart::finish`] fills in.
#[inline]
pub(crate) fn begin_frame(out: &mut Vec<u8>, request_id: i32, response_to: i32, op_code: OpCode) -> FrameStart {
    let offset = out.len();
    Header::write(out, HEADER_BYTES as u32, request_id, response_to, op_code);
    FrameStart { offset, trailer: Trailer::Nothing }
}

/// Begins an OP_MSG frame at the end of `out`. The caller appends the body, exactly one document, then calls
/// [`put_sequence`] for each sequence, then [`FrameStart::finish`].
#[inline]
pub fn begin_message(out: &mut Vec<u8>, request_id: i32, response_to: i32, flags: MessageFlags) -> FrameStart {
    let start = begin_frame(out, request_id, response_to, OpCode::Message);
    out.extend_from_slice(&flags.0.to_le_bytes());
    out.push(0);
    let trailer = if flags.contains(MessageFlags::CHECKSUM_PRESENT) { Trailer::Checksum } else { Trailer::Nothing };
    FrameStart { trailer, ..start }
}

/// Appends an OP_MSG frame to `out`; `write_body` appends its body, exactly one document, as
/// [`bunko_bson::Writer`] does. Returns the frame's length in bytes.
/// # Errors
/// [`WireError::BadLength`] above [`MAX_FRAME_BYTES`]; `out` is then unchanged.
#[inline]
pub fn write_message(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    flags: MessageFlags,
    write_body: impl FnOnce(&mut Vec<u8>),
) -> Result<usize, WireError> {
    let start = begin_message(out, request_id, response_to, flags);
    write_body(out);
    start.finish(out)
}

/// Appends a request as an OP_MSG frame. Its `documents`, each an encoded document, go beside the body as the sequence
/// `identifier` (`documents`, `updates`, ..). Returns the frame's length in bytes.
/// # Errors
/// [`WireError::BadLength`] above [`MAX_FRAME_BYTES`]; `out` is then unchanged.
/// # Panics
/// If `identifier` holds a zero byte.
pub fn write_request<'d>(
    out: &mut Vec<u8>,
    request_id: i32,
    flags: MessageFlags,
    write_body: impl FnOnce(&mut Vec<u8>),
    identifier: &str,
    documents: impl IntoIterator<Item = &'d [u8]>,
) -> Result<usize, WireError> {
    let start = begin_message(out, request_id, 0, flags);
    write_body(out);
    put_sequence(out, identifier, documents);
    start.finish(out)
}

/// Appends a document sequence to a message that [`begin_message`] began and whose body is written.
/// # Panics
/// If `identifier` holds a zero byte.
pub fn put_sequence<'d>(out: &mut Vec<u8>, identifier: &str, documents: impl IntoIterator<Item = &'d [u8]>) {
    out.push(1);
    let size_at = out.len();
    out.extend_from_slice(&[0; 4]);
    put_name(out, identifier);
    for document in documents {
        out.extend_from_slice(document);
    }
    let size = (out.len() - size_at) as u32;
    out[size_at..size_at + 4].copy_from_slice(&size.to_le_bytes());
}

/// Appends a zero-terminated name.
pub(crate) fn put_name(out: &mut Vec<u8>, name: &str) {
    assert!(!name.as_bytes().contains(&0), "a name holds a zero byte");
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use bunko_bson::{DocumentBuf, Writer};

    #[test]
    fn a_reply_is_appended_behind_another() {
        let mut out = Vec::new();
        let ok = |out: &mut Vec<u8>| {
            Writer::new(out).append("ok", 1.0).end();
        };
        let first = write_message(&mut out, 1, 7, MessageFlags::NONE, ok).expect("short");
        let second = write_message(&mut out, 2, 8, MessageFlags::MORE_TO_COME, ok).expect("short");
        assert_eq!(out.len(), first + second);
        // Length, ids, opcode, flags, section kind; then the document.
        let fields: Vec<u8> = [38_u32, 1, 7, 2013, 0].iter().flat_map(|field| field.to_le_bytes()).collect();
        assert_eq!(out[..21], [&fields[..], &[0]].concat());
        let message = Message::parse(&out[first..]).expect("well formed");
        assert_eq!((message.header.request_id, message.header.response_to), (2, 8));
        assert_eq!(message.flags, MessageFlags::MORE_TO_COME);
    }

    #[test]
    fn a_request_carries_its_documents_beside_the_body() {
        let documents: Vec<_> = (0..3).map(|n| DocumentBuf::new().with("n", n)).collect();
        let encoded = documents.iter().map(|document| document.as_ref().as_bytes());
        let mut out = Vec::new();
        let insert = |out: &mut Vec<u8>| {
            Writer::new(out).append("insert", "t").append("$db", "test").end();
        };
        write_request(&mut out, 3, MessageFlags::CHECKSUM_PRESENT, insert, "documents", encoded).expect("short");
        let message = Message::parse(&out).expect("well formed");
        assert_eq!(message.body.count(), 2);
        let sequence = message.sequence("documents").expect("there");
        assert!(sequence.documents.clone().eq(documents.iter().map(DocumentBuf::as_ref)));
    }

    #[test]
    fn a_frame_above_the_limit_leaves_nothing_behind() {
        let mut out = vec![1, 2, 3];
        let at_limit = MAX_FRAME_BYTES - 21;
        let written = write_message(&mut out, 1, 0, MessageFlags::NONE, |out| out.resize(out.len() + at_limit, 0));
        assert_eq!(written, Ok(MAX_FRAME_BYTES));
        out.truncate(3);
        let refused = write_message(&mut out, 1, 0, MessageFlags::CHECKSUM_PRESENT, |out| {
            out.resize(out.len() + at_limit, 0);
        });
        assert_eq!(refused, Err(WireError::BadLength { length: 48_000_004, limit_bytes: MAX_FRAME_BYTES }));
        assert_eq!(out, [1, 2, 3]);
    }
}
