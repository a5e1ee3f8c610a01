//! Reads arbitrary bytes through every entry of the crate. Shared with `fuzz/`.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_wire::{Codec, GetMore, KillCursors, Message, OpCode, Query, Reply, WireError, split_frame};

/// Reads frame after frame, down to every document's leaves. Returns the number of values seen.
/// # Errors
/// The error of the first malformed frame.
/// # Panics
/// If a parsed value does not hold what it promises.
pub fn read_frames(codec: &mut Codec, mut input: &[u8], limit_bytes: usize) -> Result<usize, WireError> {
    let mut values = 0;
    let mut inner = Vec::new();
    while let Some((header, body, consumed)) = split_frame(input, limit_bytes)? {
        assert_eq!((header.length as usize, body.len()), (consumed, consumed - 16));
        let (frame, rest) = input.split_at(consumed);
        input = rest;
        if header.op_code == OpCode::Compressed {
            codec.decompress(frame, limit_bytes, &mut inner)?;
            assert!(inner.len() <= limit_bytes);
            let (unwrapped, _, consumed) = split_frame(&inner, limit_bytes)?.expect("a whole frame");
            assert_eq!((unwrapped.request_id, consumed), (header.request_id, inner.len()));
            values += read_frame(unwrapped.op_code, &inner)?;
        } else {
            values += read_frame(header.op_code, frame)?;
        }
    }
    Ok(values)
}

fn read_frame(op_code: OpCode, frame: &[u8]) -> Result<usize, WireError> {
    match op_code {
        OpCode::Message => {
            let message = Message::parse(frame)?;
            let mut values = walk(message.body);
            for sequence in message.sequences() {
                let expected = sequence.documents.len();
                let mut seen = 0;
                for document in sequence.documents.clone() {
                    values += walk(document);
                    seen += 1;
                }
                assert_eq!(seen, expected);
                assert!(message.sequence(sequence.identifier).is_some());
            }
            Ok(values)
        }
        OpCode::Query => {
            let query = Query::parse(frame)?;
            Ok(walk(query.query) + query.return_fields.map_or(0, walk))
        }
        OpCode::GetMore => GetMore::parse(frame).map(|_| 1),
        OpCode::KillCursors => KillCursors::parse(frame).map(|kill| kill.cursor_ids().count()),
        OpCode::Reply => Reply::parse(frame).map(|reply| reply.documents.into_iter().map(walk).sum()),
        OpCode::Insert | OpCode::Update | OpCode::Delete | OpCode::Compressed => Ok(0),
    }
}

/// Reads every value of a document: a parsed document must be readable to its end.
pub fn walk(document: DocumentRef<'_>) -> usize {
    let mut values = 0;
    let mut last = document.as_bytes().len();
    for element in document {
        values += 1;
        values += match element.value {
            ValueRef::Document(inner) => walk(inner),
            ValueRef::Array(inner) => walk(inner.as_document()),
            ValueRef::JavaScriptWithScope { scope, .. } => walk(scope),
            _ => 0,
        };
        // Each element takes at least its type and its name's closing zero.
        last = last.checked_sub(2).expect("no more elements than bytes");
    }
    values
}
