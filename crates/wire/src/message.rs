//! OP_MSG: a command or its reply, read in place.

use crate::cursor::Cursor;
use crate::{Header, MAX_SEQUENCES, MessageFlags, OpCode, WireError};
use bunko_bson::{BsonError, DocumentRef};
use std::collections::HashSet;

const BODY_SECTION: u8 = 0;
const SEQUENCE_SECTION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
/// Greatest number of documents of a sequence that are refused one by one. With more, the message is refused.
const REFUSED_MAX: usize = 1_000;
/// Number of sequences after the first up to which names are compared pair by pair, which is quicker than making a
/// table.
const FEW_SEQUENCES: usize = 3;
/// Flag bits that a receiver must understand.
const REQUIRED_FLAGS: u32 = 0xffff;

/// An OP_MSG frame: one body, and the document sequences that stand in for array fields of the body.
/// Source: MongoDB wire protocol, "OP_MSG".
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// The frame's header.
    pub header: Header,
    /// Flags. Unknown ones of bits 16 to 31 are ignored.
    pub flags: MessageFlags,
    /// The command, or the reply.
    pub body: DocumentRef<'a>,
    // Nearly every message has no sequence or one. Neither may cost an allocation.
    first: Option<Sequence<'a>>,
    rest: Vec<Sequence<'a>>,
}

/// Documents sent beside the body, in the place of the body's array field `identifier`.
#[derive(Clone, Debug)]
pub struct Sequence<'a> {
    /// The field's name: `documents`, `updates`, `deletes`, `ops`, `nsInfo`.
    pub identifier: &'a str,
    /// The documents in their order. Each [`refused`](Self::refused) document is replaced by an empty one.
    pub documents: SequenceDocuments<'a>,
    /// Positions of documents with strings that are not UTF-8, and the error of each. The other documents can be used
    /// without them.
    pub refused: Vec<(usize, BsonError)>,
}

/// Walks a sequence's documents, which were checked when the message was parsed.
#[derive(Clone, Debug)]
pub struct SequenceDocuments<'a> {
    rest: &'a [u8],
    count: usize,
    /// Number of refused documents that are left: mostly none, which saves looking for them.
    refused: usize,
}

impl<'a> Message<'a> {
    /// Checks a whole frame, header included, and reads it in place.
    /// # Errors
    /// [`WireError`] if flags, sections, documents or checksum are wrong, or two sequences have the same name.
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let (header, content) = Header::of_frame(frame, OpCode::Message)?;
        let mut cursor = Cursor::new(content);
        let flags = MessageFlags(cursor.uint32()?);
        let known = MessageFlags::CHECKSUM_PRESENT.with(MessageFlags::MORE_TO_COME);
        if flags.0 & REQUIRED_FLAGS & !known.0 != 0 {
            return Err(WireError::UnknownFlags(flags.0));
        }
        if flags.contains(MessageFlags::CHECKSUM_PRESENT) {
            cursor = Cursor::new(verify_checksum(frame, cursor.rest())?);
        }

        let mut body = None;
        let mut first = None;
        let mut rest = Vec::new();
        while !cursor.is_empty() {
            match cursor.byte()? {
                BODY_SECTION if body.is_some() => return Err(WireError::SecondBody),
                BODY_SECTION => body = Some(cursor.document()?),
                SEQUENCE_SECTION if first.is_none() => first = Some(Sequence::parse(&mut cursor)?),
                SEQUENCE_SECTION if rest.len() + 1 == MAX_SEQUENCES => return Err(WireError::TooManySequences),
                SEQUENCE_SECTION => rest.push(Sequence::parse(&mut cursor)?),
                kind => return Err(WireError::UnknownSection(kind)),
            }
        }
        let message = Self { header, flags, body: body.ok_or(WireError::MissingBody)?, first, rest };
        message.refuse_duplicates()?;
        Ok(message)
    }

    /// Makes the message that [`Self::parse`] would read from a frame with this body and, optionally, a sequence: its
    /// name, and its encoded documents one after the other. For clients in the server's own process.
    /// # Errors
    /// As [`Self::parse`].
    pub fn of_parts(body: DocumentRef<'a>, sequence: Option<(&'a str, &'a [u8])>) -> Result<Self, WireError> {
        let header = Header { length: 0, request_id: 0, response_to: 0, op_code: OpCode::Message };
        let first = match sequence {
            Some((identifier, documents)) => Some(Sequence::of_documents(identifier, Cursor::new(documents))?),
            None => None,
        };
        let message = Self { header, flags: MessageFlags::default(), body, first, rest: Vec::new() };
        message.refuse_duplicates()?;
        Ok(message)
    }

    /// Refuses a name that is there twice: two layers might see two different commands.
    fn refuse_duplicates(&self) -> Result<(), WireError> {
        if self.rest.len() > FEW_SEQUENCES {
            return self.refuse_duplicates_among_many();
        }
        for (index, sequence) in self.sequences().enumerate() {
            let identifier = sequence.identifier;
            if self.sequences().take(index).any(|earlier| earlier.identifier == identifier) {
                return Err(WireError::DuplicateSequence { identifier: identifier.to_owned() });
            }
            if self.body.get(identifier).is_some() {
                return Err(WireError::SequenceInBody { identifier: identifier.to_owned() });
            }
        }
        Ok(())
    }

    /// As [`Self::refuse_duplicates`], in one walk over all names.
    fn refuse_duplicates_among_many(&self) -> Result<(), WireError> {
        let mut identifiers = HashSet::with_capacity(self.rest.len() + 1);
        if let Some(twice) = self.sequences().find(|sequence| !identifiers.insert(sequence.identifier)) {
            return Err(WireError::DuplicateSequence { identifier: twice.identifier.to_owned() });
        }
        match self.body.iter().find(|field| identifiers.contains(field.name)) {
            Some(field) => Err(WireError::SequenceInBody { identifier: field.name.to_owned() }),
            None => Ok(()),
        }
    }

    /// The document sequences in their order, at most [`MAX_SEQUENCES`].
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence<'a>> + Clone {
        self.first.iter().chain(&self.rest)
    }

    /// The sequence that stands for the body's field `identifier`.
    pub fn sequence(&self, identifier: &str) -> Option<&Sequence<'a>> {
        self.sequences().find(|sequence| sequence.identifier == identifier)
    }
}

/// Checks the CRC-32C at the frame's end, which covers the whole frame before it, and returns the sections.
fn verify_checksum<'a>(frame: &[u8], content: &'a [u8]) -> Result<&'a [u8], WireError> {
    let (sections, &checksum) = content.split_last_chunk::<CHECKSUM_BYTES>().ok_or(WireError::Truncated)?;
    let found = u32::from_le_bytes(checksum);
    let computed = bunko_checksum::crc32c(&frame[..frame.len() - CHECKSUM_BYTES]);
    if found == computed { Ok(sections) } else { Err(WireError::BadChecksum { found, computed }) }
}

impl<'a> Sequence<'a> {
    fn parse(cursor: &mut Cursor<'a>) -> Result<Self, WireError> {
        let mut section = Cursor::new(cursor.sized()?);
        section.int32()?;
        let identifier = section.name()?;
        Self::of_documents(identifier, section)
    }

    fn of_documents(identifier: &'a str, mut section: Cursor<'a>) -> Result<Self, WireError> {
        let rest = section.rest();
        let (mut count, mut refused) = (0, Vec::new());
        while !section.is_empty() {
            match section.document() {
                Ok(_) => {}
                Err(WireError::Document(found @ BsonError::BadString { .. })) if refused.len() < REFUSED_MAX => {
                    refused.push((count, found));
                }
                Err(error) => return Err(error),
            }
            count += 1;
        }
        let documents = SequenceDocuments { rest, count, refused: refused.len() };
        Ok(Self { identifier, documents, refused })
    }
}

impl<'a> Iterator for SequenceDocuments<'a> {
    type Item = DocumentRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<DocumentRef<'a>> {
        // The documents were parsed before and their lengths fit, so `None` is only the end.
        let length = u32::from_le_bytes(*self.rest.first_chunk::<4>()?) as usize;
        let (document, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.count -= 1;
        if self.refused > 0 && DocumentRef::parse(document).is_err() {
            self.refused -= 1;
            return Some(DocumentRef::EMPTY);
        }
        Some(DocumentRef::trusted(document))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for SequenceDocuments<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    fn frame(flags: u32, sections: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        Header::write(&mut frame, 20 + sections.len() as u32, 1, 0, OpCode::Message);
        frame.extend_from_slice(&flags.to_le_bytes());
        frame.extend_from_slice(sections);
        frame
    }

    fn body(document: &DocumentBuf) -> Vec<u8> {
        [&[BODY_SECTION], document.as_ref().as_bytes()].concat()
    }

    fn sequence(identifier: &str, documents: &[DocumentBuf]) -> Vec<u8> {
        let mut content = [identifier.as_bytes(), &[0]].concat();
        for document in documents {
            content.extend_from_slice(document.as_ref().as_bytes());
        }
        [&[SEQUENCE_SECTION], &(content.len() as u32 + 4).to_le_bytes()[..], &content].concat()
    }

    fn insert() -> DocumentBuf {
        DocumentBuf::new().with("insert", "t").with("$db", "test")
    }

    #[test]
    fn a_text_that_is_not_utf8_refuses_its_document_alone() {
        let mut wrong = DocumentBuf::new().with("s", "Gr__n").into_bytes();
        let at = wrong.windows(2).position(|pair| pair == b"__").expect("there");
        wrong[at..at + 2].copy_from_slice(&[0xfc, 0xdf]);
        let right = [DocumentBuf::new().with("a", 1_i32), DocumentBuf::new().with("a", 2_i32)];
        let content =
            [&b"documents\0"[..], right[0].as_ref().as_bytes(), &wrong[..], right[1].as_ref().as_bytes(), &wrong[..]]
                .concat();
        let section = [&[SEQUENCE_SECTION], &(content.len() as u32 + 4).to_le_bytes()[..], &content].concat();
        let frame = frame(0, &[body(&insert()), section].concat());
        let message = Message::parse(&frame).expect("well formed but for the texts");
        let sequence = message.sequence("documents").expect("there");
        let read: Vec<_> = sequence.documents.clone().collect();
        assert_eq!(read, [right[0].as_ref(), DocumentRef::EMPTY, right[1].as_ref(), DocumentRef::EMPTY]);
        assert_eq!(sequence.refused.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn sections_are_read_in_any_order() {
        let documents = [DocumentBuf::new().with("a", 1_i32), DocumentBuf::new()];
        let sections = [sequence("documents", &documents), body(&insert()), sequence("empty", &[])].concat();
        let frame = frame(0x8001_0002, &sections);
        let message = Message::parse(&frame).expect("well formed");
        assert!(message.flags.contains(MessageFlags::MORE_TO_COME.with(MessageFlags::EXHAUST_ALLOWED)));
        assert_eq!(message.body, insert().as_ref());
        let names: Vec<_> = message.sequences().map(|sequence| sequence.identifier).collect();
        assert_eq!(names, ["documents", "empty"]);
        let found = message.sequence("documents").expect("there").documents.clone();
        assert_eq!(found.len(), 2);
        assert!(found.eq(documents.iter().map(DocumentBuf::as_ref)));
        assert_eq!(message.sequence("empty").expect("there").documents.len(), 0);
        assert!(message.sequence("updates").is_none());
    }

    #[test]
    fn malformed_messages_are_named() {
        let good = body(&insert());
        let refused = |flags: u32, sections: &[&[u8]]| Message::parse(&frame(flags, &sections.concat())).unwrap_err();
        assert_eq!(refused(4, &[&good]), WireError::UnknownFlags(4));
        assert_eq!(refused(0, &[]), WireError::MissingBody);
        assert_eq!(refused(0, &[&sequence("documents", &[])]), WireError::MissingBody);
        assert_eq!(refused(0, &[&good, &good]), WireError::SecondBody);
        assert_eq!(refused(0, &[&good, &[2]]), WireError::UnknownSection(2));
        assert_eq!(refused(0, &[&good, &[1, 3, 0, 0, 0]]), WireError::BadCount(3));
        assert_eq!(refused(0, &[&good, &[1, 9, 0, 0, 0, 0]]), WireError::Truncated);
        assert_eq!(refused(0, &[&good, &[1, 5, 0, 0, 0, b'a']]), WireError::BadName);
        assert_eq!(refused(0, &[&good, &[1, 6, 0, 0, 0, 0xff, 0]]), WireError::BadName);
        // The length of a document reaches past the end of its sequence.
        let reaching = [&[1, 11, 0, 0, 0, b'a', 0][..], &[6, 0, 0, 0, 0]].concat();
        assert_eq!(refused(0, &[&good, &reaching]), WireError::Truncated);
        assert!(matches!(refused(0, &[&[0, 5, 0, 0, 0, 1]]), WireError::Document(_)));
    }

    #[test]
    fn a_name_is_there_once() {
        let twice = [body(&insert()), sequence("documents", &[]), sequence("documents", &[])].concat();
        let beside_the_body = [sequence("insert", &[]), body(&insert())].concat();
        for (sections, refused) in [
            (twice, WireError::DuplicateSequence { identifier: "documents".into() }),
            (beside_the_body, WireError::SequenceInBody { identifier: "insert".into() }),
        ] {
            assert_eq!(Message::parse(&frame(0, &sections)).unwrap_err(), refused);
            let others = (0..20).flat_map(|index| sequence(&index.to_string(), &[]));
            let among_many: Vec<u8> = others.chain(sections).collect();
            assert_eq!(Message::parse(&frame(0, &among_many)).unwrap_err(), refused);
        }
    }

    #[test]
    fn the_number_of_sequences_is_limited() {
        let with = |count: usize| {
            let sequences = (0..count).flat_map(|index| sequence(&index.to_string(), &[]));
            frame(0, &body(&insert()).into_iter().chain(sequences).collect::<Vec<_>>())
        };
        let most = with(MAX_SEQUENCES);
        assert_eq!(Message::parse(&most).expect("well formed").sequences().count(), MAX_SEQUENCES);
        assert_eq!(Message::parse(&with(MAX_SEQUENCES + 1)).unwrap_err(), WireError::TooManySequences);
    }

    #[test]
    fn the_checksum_covers_the_whole_frame() {
        let mut good = frame(1, &body(&insert()));
        let length = good.len() as u32 + 4;
        good[..4].copy_from_slice(&length.to_le_bytes());
        good.extend_from_slice(&bunko_checksum::crc32c(&good).to_le_bytes());
        assert_eq!(Message::parse(&good).expect("well formed").body, insert().as_ref());
        // The changed byte is in the request id, where only the checksum can notice it.
        good[4] ^= 0x80;
        assert!(matches!(Message::parse(&good), Err(WireError::BadChecksum { .. })));
        assert_eq!(Message::parse(&frame(1, &[0, 0])).unwrap_err(), WireError::Truncated);
    }

    #[test]
    fn a_frame_is_exactly_as_long_as_it_says() {
        let mut long = frame(0, &body(&insert()));
        long.push(0);
        assert!(matches!(Message::parse(&long), Err(WireError::BadLength { .. })));
        assert_eq!(Message::parse(&long[..30]).unwrap_err(), WireError::Truncated);
        let expected = WireError::WrongOpCode { expected: OpCode::Message, found: OpCode::Query };
        let mut other = frame(0, &body(&insert()));
        other[12..16].copy_from_slice(&2004_i32.to_le_bytes());
        assert_eq!(Message::parse(&other).unwrap_err(), expected);
    }
}
