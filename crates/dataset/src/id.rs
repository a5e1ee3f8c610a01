//! The `_id` of a document, in its BSON encoding.

use crate::fnv;
use crate::random::Random;
use crate::text_form::text_form;
use bunko_bson::{ObjectId, ValueRef};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type and form of the `_id`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum IdKind {
    /// 12 bytes that ascend with the document's number.
    ObjectId,
    /// The document's number.
    Int64,
    /// `user` and 20 digits of the hashed number: the keys of YCSB with `zeropadding=20`.
    Text,
}

text_form!(IdKind, "kind of _id", [ObjectId => "object-id", Int64 => "int64", Text => "text"]);

const TEXT_PREFIX: &[u8; 4] = b"user";
const TEXT_DIGITS: usize = 20;
const TEXT_BYTES: usize = TEXT_PREFIX.len() + TEXT_DIGITS;
/// A string's length, its text and its terminating zero.
const PAYLOAD_BYTES_MAX: usize = 4 + TEXT_BYTES + 1;

impl IdKind {
    /// Length of the id's payload in a document, without type and name, in bytes.
    pub const fn payload_bytes(self) -> usize {
        match self {
            Self::ObjectId => 12,
            Self::Int64 => 8,
            Self::Text => PAYLOAD_BYTES_MAX,
        }
    }

    /// Whether ids ascend with the document's number, so that a range of numbers is a range of ids. Hashed ids do not.
    pub const fn ascends(self) -> bool {
        match self {
            Self::ObjectId | Self::Int64 => true,
            Self::Text => false,
        }
    }
}

/// One `_id`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id {
    kind: IdKind,
    /// The BSON payload, padded with zeros.
    bytes: [u8; PAYLOAD_BYTES_MAX],
}

impl Id {
    /// An id that no document has, to be replaced in a prepared command: its bytes occur nowhere else in the command.
    pub fn placeholder(kind: IdKind) -> Self {
        match kind {
            IdKind::ObjectId => Self::object_id(ObjectId(*b"\xfe\xedplaceholde")),
            IdKind::Int64 => Self::int64(i64::from_le_bytes(*b"\xfe\xedplaceh")),
            IdKind::Text => Self::text(u64::MAX),
        }
    }

    /// The type and form of the id.
    pub fn kind(&self) -> IdKind {
        self.kind
    }

    /// The payload: [`IdKind::payload_bytes`] bytes that follow type and name in a document.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[..self.kind.payload_bytes()]
    }

    /// The id as a value for a filter.
    pub fn as_value(&self) -> ValueRef<'_> {
        match self.kind {
            IdKind::ObjectId => ValueRef::ObjectId(ObjectId(self.leading())),
            IdKind::Int64 => ValueRef::Int64(i64::from_le_bytes(self.leading())),
            IdKind::Text => {
                let text = &self.bytes[4..4 + TEXT_BYTES];
                ValueRef::String(std::str::from_utf8(text).expect("a word and digits"))
            }
        }
    }

    fn leading<const N: usize>(&self) -> [u8; N] {
        self.bytes[..N].try_into().expect("payloads are this long")
    }

    fn object_id(id: ObjectId) -> Self {
        let mut bytes = [0; PAYLOAD_BYTES_MAX];
        bytes[..12].copy_from_slice(&id.0);
        Self { kind: IdKind::ObjectId, bytes }
    }

    fn int64(number: i64) -> Self {
        let mut bytes = [0; PAYLOAD_BYTES_MAX];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Self { kind: IdKind::Int64, bytes }
    }

    fn text(number: u64) -> Self {
        let mut bytes = [0; PAYLOAD_BYTES_MAX];
        bytes[..4].copy_from_slice(&(TEXT_BYTES as u32 + 1).to_le_bytes());
        bytes[4..4 + TEXT_PREFIX.len()].copy_from_slice(TEXT_PREFIX);
        let mut rest = number;
        for digit in bytes[4 + TEXT_PREFIX.len()..4 + TEXT_BYTES].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        Self { kind: IdKind::Text, bytes }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&bunko_bson::extended_json::to_relaxed(self.as_value()))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// Makes the ids of documents from their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    pub(crate) kind: IdKind,
    /// The five bytes of an ObjectId that identify the process that made it.
    process: [u8; 5],
}

/// The first ObjectId's time, 2020-01-01: ids must not depend on the clock.
const FIRST_SECONDS: u32 = 1_577_836_800;

impl Ids {
    pub(crate) fn new(kind: IdKind, seed: u64) -> Self {
        let mut process = [0; 5];
        process.copy_from_slice(&Random::of_dataset(seed).bits().to_le_bytes()[..5]);
        Self { kind, process }
    }

    /// The id of document `number`. ObjectIds are unique below 2^56, integers below 2^63; texts are unique except for
    /// collisions of the hash.
    #[inline]
    pub(crate) fn id(&self, number: u64) -> Id {
        match self.kind {
            IdKind::ObjectId => {
                let seconds = FIRST_SECONDS.wrapping_add((number >> 24) as u32);
                Id::object_id(ObjectId::from_parts(seconds, self.process, number as u32 & 0x00ff_ffff))
            }
            IdKind::Int64 => Id::int64(number as i64),
            IdKind::Text => Id::text(fnv::scatter(number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{DocumentBuf, order};
    use std::collections::HashSet;

    #[test]
    fn payloads_are_the_bytes_of_the_value() {
        for &kind in IdKind::ALL {
            let ids = Ids::new(kind, 7);
            for id in [ids.id(0), ids.id(3_000_000_000), Id::placeholder(kind)] {
                let encoded = DocumentBuf::new().with("_id", id.as_value()).into_bytes();
                assert_eq!(&encoded[4 + 1 + 4..encoded.len() - 1], id.payload(), "{id}");
                assert_eq!((id.kind(), id.payload().len()), (kind, kind.payload_bytes()));
            }
        }
    }

    #[test]
    fn ids_are_unique_and_ascend_where_they_say_so() {
        // Every 2^24 numbers, the seconds of ObjectIds advance. No id is the placeholder.
        let edge = (1 << 24) - 500;
        for &kind in IdKind::ALL {
            let ids = Ids::new(kind, 3);
            let all: Vec<_> = (0..200_000).chain(edge..edge + 1_000).map(|number| ids.id(number)).collect();
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            assert!(!all.contains(&Id::placeholder(kind)));
            let ascending = all.is_sorted_by(|a, b| order::compare(a.as_value(), b.as_value()).is_lt());
            assert_eq!(ascending, kind.ascends());
        }
    }

    #[test]
    fn texts_are_the_keys_of_ycsb() {
        let ids = Ids::new(IdKind::Text, 1);
        assert_eq!(ids.id(0).as_value().as_str(), Some("user06284781860667377211"));
        assert_eq!(ids.id(1).as_value().as_str(), Some("user08517097267634966620"));
    }
}
