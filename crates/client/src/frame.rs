//! Requests that are written in place, and a cheap check of replies for load generators.
//!
//! `bunko_wire` validates a whole message; a generator that did so would cost as much as the server.

use bunko_bson::DocumentRef;
use bunko_wire::{
    FrameStart, HEADER_BYTES, MAX_FRAME_BYTES, MessageFlags, OpCode, WireError, begin_message, split_frame,
};

/// Flag bits and the kind of the first section: offset of a reply's document after the header.
const DOCUMENT_START: usize = 4 + 1;
/// Offset of a request's command.
pub const COMMAND_START: usize = HEADER_BYTES + DOCUMENT_START;
const SECTION_BODY: u8 = 0;
const SECTION_SEQUENCE: u8 = 1;

/// Whether the server replies to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// The server replies.
    Expected,
    /// The server does not reply (`moreToCome`): for unacknowledged writes.
    Silent,
}

/// Appends one OP_MSG request to a buffer that may hold others already.
pub struct FrameWriter<'b> {
    out: &'b mut Vec<u8>,
    start: FrameStart,
}

impl<'b> FrameWriter<'b> {
    /// Starts a request whose command is `body`.
    pub fn new(out: &'b mut Vec<u8>, request_id: i32, mode: ReplyMode, body: DocumentRef<'_>) -> Self {
        let flags = if mode == ReplyMode::Silent { MessageFlags::MORE_TO_COME } else { MessageFlags::NONE };
        let start = begin_message(out, request_id, 0, flags);
        out.extend_from_slice(body.as_bytes());
        Self { out, start }
    }

    /// Adds a document sequence under `name`; `write` appends encoded documents, one after the other.
    pub fn sequence(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.out.push(SECTION_SEQUENCE);
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
        write(self.out);
        let length = ((self.out.len() - start) as u32).to_le_bytes();
        self.out[start..start + 4].copy_from_slice(&length);
        self
    }

    /// Completes the request.
    /// # Errors
    /// `BadLength` above 48,000,000 bytes; the buffer is then as before the request.
    pub fn finish(self) -> Result<(), WireError> {
        self.start.finish(self.out).map(|_| ())
    }
}

/// Whether the server will reply to a request made by [`FrameWriter`].
pub fn expects_reply(request: &[u8]) -> bool {
    let flags = request.get(HEADER_BYTES..).and_then(<[u8]>::first_chunk);
    flags.is_some_and(|&flags| !MessageFlags(u32::from_le_bytes(flags)).contains(MessageFlags::MORE_TO_COME))
}

/// Appends fields to a request's command. The request is at the end of `out`, from `start` on, as a [`FrameWriter`]
/// finished it. `fields` are encoded elements without a document around them.
/// # Errors
/// `BadLength` if the request would exceed 48,000,000 bytes; then it is unchanged.
pub fn append_to_command(out: &mut Vec<u8>, start: usize, fields: &[u8]) -> Result<(), WireError> {
    let length_bytes = out.len() - start + fields.len();
    if length_bytes > MAX_FRAME_BYTES {
        return Err(WireError::BadLength { length: length_bytes as i64, limit_bytes: MAX_FRAME_BYTES });
    }
    let document = start + COMMAND_START;
    let grow = |out: &mut Vec<u8>, at: usize| -> usize {
        let length = u32::from_le_bytes(out[at..].first_chunk().copied().unwrap_or_default());
        out[at..at + 4].copy_from_slice(&(length + fields.len() as u32).to_le_bytes());
        length as usize
    };
    grow(out, start);
    let end = document + grow(out, document) - 1;
    // The rest, which may be a document sequence, moves after the new fields.
    let rest = out.len() - end;
    out.resize(out.len() + fields.len(), 0);
    out.copy_within(end..end + rest, end + fields.len());
    out[end..end + fields.len()].copy_from_slice(fields);
    Ok(())
}

/// A whole reply, borrowed from a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplyFrame<'a> {
    /// Id of the request that this reply answers.
    pub response_to: i32,
    /// The reply's document. Its length is checked, its contents are not.
    pub document: DocumentRef<'a>,
    /// The whole frame's length.
    pub length_bytes: usize,
}

/// Splits one OP_MSG reply with one section off the front of `received`; `None` until it is complete.
/// # Errors
/// For a wrong length, another opcode, or another kind of section.
pub fn split_reply(received: &[u8]) -> Result<Option<ReplyFrame<'_>>, WireError> {
    let Some((header, body, length_bytes)) = split_frame(received, MAX_FRAME_BYTES)? else { return Ok(None) };
    if header.op_code != OpCode::Message {
        return Err(WireError::WrongOpCode { expected: OpCode::Message, found: header.op_code });
    }
    let (&flags, rest) = body.split_first_chunk().ok_or(WireError::Truncated)?;
    let has_checksum = MessageFlags(u32::from_le_bytes(flags)).contains(MessageFlags::CHECKSUM_PRESENT);
    let trailer_bytes = if has_checksum { 4 } else { 0 };
    match rest.first() {
        Some(&SECTION_BODY) => {}
        Some(&kind) => return Err(WireError::UnknownSection(kind)),
        None => return Err(WireError::MissingBody),
    }
    let document = body.get(DOCUMENT_START..body.len() - trailer_bytes).ok_or(WireError::Truncated)?;
    let claimed = document.first_chunk().map_or(0, |&length| u32::from_le_bytes(length) as usize);
    if claimed < DocumentRef::EMPTY.len_bytes() || claimed != document.len() {
        return Err(WireError::BadLength { length: claimed as i64, limit_bytes: document.len() });
    }
    Ok(Some(ReplyFrame { response_to: header.response_to, document: DocumentRef::trusted(document), length_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;
    use bunko_wire::Message;

    fn request(mode: ReplyMode, body: &DocumentBuf) -> Vec<u8> {
        let mut out = Vec::new();
        FrameWriter::new(&mut out, 7, mode, body.as_ref()).finish().expect("short");
        out
    }

    #[test]
    fn a_reply_is_cut_off_once_it_is_whole() {
        let body = DocumentBuf::new().with("ok", 1.0);
        let mut frame = request(ReplyMode::Expected, &body);
        assert!(expects_reply(&frame));
        frame[8..12].copy_from_slice(&9_i32.to_le_bytes());
        let length_bytes = frame.len();
        let whole = ReplyFrame { response_to: 9, document: body.as_ref(), length_bytes };
        assert_eq!(split_reply(&frame), Ok(Some(whole)));
        assert_eq!(split_reply(&frame[..length_bytes - 1]), Ok(None));
        frame.push(0xee);
        assert_eq!(split_reply(&frame), Ok(Some(whole)));
    }

    #[test]
    fn a_sequence_is_what_the_wire_crate_reads() {
        let document = DocumentBuf::new().with("insert", "c");
        let mut out = vec![0xee];
        let mut frame = FrameWriter::new(&mut out, 7, ReplyMode::Silent, document.as_ref());
        frame.sequence("documents", |out| out.extend_from_slice(&document.as_ref().as_bytes().repeat(3)));
        frame.finish().expect("short");
        assert!(!expects_reply(&out[1..]));
        let message = Message::parse(&out[1..]).expect("well formed");
        assert_eq!((message.header.request_id, message.body), (7, document.as_ref()));
    }

    #[test]
    fn fields_come_behind_those_of_the_command() {
        let document = DocumentBuf::new().with("insert", "c");
        let written = |command: &DocumentBuf| {
            let mut out = vec![0xee];
            let mut frame = FrameWriter::new(&mut out, 7, ReplyMode::Expected, command.as_ref());
            frame.sequence("documents", |out| out.extend_from_slice(&document.as_ref().as_bytes().repeat(3)));
            frame.finish().expect("short");
            out
        };
        let more = DocumentBuf::new().with("n", 5_i64);
        let bytes = more.as_ref().as_bytes();
        let mut out = written(&document);
        append_to_command(&mut out, 1, &bytes[4..bytes.len() - 1]).expect("short");
        assert_eq!(out, written(&document.clone().with("n", 5_i64)));
        assert!(append_to_command(&mut out, 1, &vec![0; MAX_FRAME_BYTES]).is_err());
    }

    #[test]
    fn lying_lengths_and_other_opcodes_are_refused() {
        let frame = request(ReplyMode::Expected, &DocumentBuf::new());
        let changed = |at: usize, to: u8| {
            let mut frame = frame.clone();
            frame[at] = to;
            split_reply(&frame).map(|_| ())
        };
        assert!(matches!(changed(0, 15), Err(WireError::BadLength { length: 15, .. })));
        assert!(matches!(changed(0, 18), Err(WireError::Truncated)));
        assert!(matches!(changed(0, 20), Err(WireError::MissingBody)));
        assert!(matches!(changed(0, 21), Err(WireError::BadLength { length: 0, .. })));
        assert!(matches!(changed(HEADER_BYTES + DOCUMENT_START, 6), Err(WireError::BadLength { length: 6, .. })));
        assert!(matches!(changed(HEADER_BYTES + 4, 1), Err(WireError::UnknownSection(1))));
        // 2013 is 0x7dd; 2012 is OP_COMPRESSED, which the client did not offer.
        assert!(matches!(changed(12, 0xdc), Err(WireError::WrongOpCode { .. })));
    }
}
