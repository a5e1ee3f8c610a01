//! OP_REPLY: the answer to OP_QUERY and OP_GET_MORE.

use crate::cursor::Cursor;
use crate::writer::begin_frame;
use crate::{Header, OpCode, ReplyFlags, WireError};
use bunko_bson::DocumentRef;

/// The fields of an OP_REPLY besides its documents. [`Self::COMMAND`] is that of every command's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHead {
    /// Flags.
    pub flags: ReplyFlags,
    /// The cursor that holds the rest; 0 if nothing is left.
    pub cursor_id: i64,
    /// Number of documents that the cursor returned before these.
    pub starting_from: i32,
}

impl ReplyHead {
    /// A command's reply: one document, no cursor.
    pub const COMMAND: Self = Self { flags: ReplyFlags::AWAIT_CAPABLE, cursor_id: 0, starting_from: 0 };
}

/// An OP_REPLY frame, read in place.
/// Source: MongoDB wire protocol, "OP_REPLY".
#[derive(Clone, Debug)]
pub struct Reply<'a> {
    /// The frame's header.
    pub header: Header,
    /// Flags and cursor.
    pub head: ReplyHead,
    /// The documents in their order.
    pub documents: Vec<DocumentRef<'a>>,
}

impl<'a> Reply<'a> {
    /// Checks a whole frame, header included, and reads it in place.
    /// # Errors
    /// [`WireError::BadCount`] if the number of documents is not that of the documents sent; other errors of a
    /// malformed frame.
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let (header, content) = Header::of_frame(frame, OpCode::Reply)?;
        let mut cursor = Cursor::new(content);
        let flags = ReplyFlags(cursor.uint32()?);
        let head = ReplyHead { flags, cursor_id: cursor.int64()?, starting_from: cursor.int32()? };
        let count = cursor.int32()?;
        let mut documents = Vec::new();
        while !cursor.is_empty() {
            documents.push(cursor.document()?);
        }
        if usize::try_from(count) != Ok(documents.len()) {
            return Err(WireError::BadCount(count));
        }
        Ok(Self { header, head, documents })
    }
}

/// Appends an OP_REPLY frame to `out`. `write_documents` appends its whole documents, one after the other. They are
/// counted here, so the number cannot be wrong. Returns the frame's length in bytes.
/// # Errors
/// [`WireError::BadLength`] above [`crate::MAX_FRAME_BYTES`]; `out` is then unchanged.
pub fn write_reply(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    head: ReplyHead,
    write_documents: impl FnOnce(&mut Vec<u8>),
) -> Result<usize, WireError> {
    let start = begin_frame(out, request_id, response_to, OpCode::Reply);
    out.extend_from_slice(&head.flags.0.to_le_bytes());
    out.extend_from_slice(&head.cursor_id.to_le_bytes());
    out.extend_from_slice(&head.starting_from.to_le_bytes());
    let count_at = out.len();
    out.extend_from_slice(&[0; 4]);
    write_documents(out);
    let count = count_documents(&out[count_at + 4..]);
    out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    start.finish(out)
}

/// Counts documents by their lengths. They are Bunko's own, so the lengths are right.
fn count_documents(mut documents: &[u8]) -> u32 {
    let mut count = 0;
    while let Some(&length) = documents.first_chunk::<4>() {
        documents = documents.get((u32::from_le_bytes(length) as usize).max(5)..).unwrap_or_default();
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{DocumentBuf, Writer};

    #[test]
    fn a_commands_reply_is_one_document() {
        let mut out = vec![0xee];
        let written = write_reply(&mut out, 9, 4, ReplyHead::COMMAND, |out| {
            Writer::new(out).append("ok", 1.0).end();
        });
        let frame = &out[1..];
        assert_eq!(written, Ok(frame.len()));
        let expected: Vec<u8> = [53_u32, 9, 4, 1, 8, 0, 0, 0, 1].iter().flat_map(|field| field.to_le_bytes()).collect();
        assert_eq!(frame[..36], expected);
        let reply = Reply::parse(frame).expect("well formed");
        assert_eq!((reply.header.response_to, reply.head), (4, ReplyHead::COMMAND));
        assert_eq!(reply.documents, [DocumentBuf::new().with("ok", 1.0).as_ref()]);
    }

    #[test]
    fn documents_are_counted() {
        let head = ReplyHead { flags: ReplyFlags::CURSOR_NOT_FOUND, cursor_id: i64::MIN, starting_from: 101 };
        for count in [0, 1, 300] {
            let document = DocumentBuf::new().with("n", "x");
            let mut frame = Vec::new();
            write_reply(&mut frame, 1, 2, head, |out| {
                (0..count).for_each(|_| out.extend_from_slice(document.as_ref().as_bytes()));
            })
            .expect("short");
            let reply = Reply::parse(&frame).expect("well formed");
            assert_eq!((reply.head, reply.documents.len()), (head, count));
            frame[32] ^= 1;
            assert!(matches!(Reply::parse(&frame), Err(WireError::BadCount(_))));
        }
    }
}
