//! Parses the values in the key that a resume token encodes.
//!
//! A key is a KeyString of MongoDB: for each value a type byte and the bytes of that type, up to an end that may be
//! missing. Values that tokens do not need are skipped.
//! Source: the tokens that MongoDB 8 gives to clients; the published type bytes of KeyStrings.

use bunko_bson::{ObjectId, Timestamp};
use bunko_errors::{ErrorCode, Failure, Result};
use std::ops::Range;

pub(crate) const END: u8 = 0x04;
pub(crate) const NULL: u8 = 0x14;
pub(crate) const STRING: u8 = 0x3c;
pub(crate) const OBJECT: u8 = 0x46;
pub(crate) const BINARY: u8 = 0x5a;
pub(crate) const OBJECT_ID: u8 = 0x64;
pub(crate) const FALSE: u8 = 0x6e;
pub(crate) const TRUE: u8 = 0x6f;
pub(crate) const TIMESTAMP: u8 = 0x82;
const MIN_KEY: u8 = 0x0a;
const UNDEFINED: u8 = 0x0f;
const NOT_A_NUMBER: u8 = 0x1e;
const LARGE_NEGATIVE: u8 = 0x1f;
const SMALL_NEGATIVE: u8 = 0x28;
const ZERO: u8 = 0x29;
const SMALL_POSITIVE: u8 = 0x2a;
const LARGE_POSITIVE: u8 = 0x33;
const ARRAY: u8 = 0x50;
const DATE: u8 = 0x78;
const REGEX: u8 = 0x8c;
const DB_POINTER: u8 = 0x96;
const CODE: u8 = 0xa0;
const CODE_WITH_SCOPE: u8 = 0xaa;
const MAX_KEY: u8 = 0xf0;
/// Marks before and after a value, in the bounds of ranges.
const LESS: u8 = 0x01;
const GREATER: u8 = 0xfe;
/// Follows a zero byte that does not end its text.
const TEXT_GOES_ON: u8 = 0xff;
/// Announces a length of four bytes.
const LONG_LENGTH: u8 = 0xff;
/// Deepest nesting of values that is parsed.
const DEPTH_MAX: usize = 200;
/// The field of an event's identity that holds the document's `_id`.
const DOCUMENT_KEY: &[u8] = b"documentKey";

/// A value, as far as tokens need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'k> {
    Timestamp(Timestamp),
    Integer(i32),
    Boolean(bool),
    Null,
    Binary { subtype: u8, bytes: &'k [u8] },
    Object,
    Other,
}

/// All values of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'k> {
    /// Each value, with its byte range.
    pub values: Vec<(Part<'k>, Range<usize>)>,
    /// Whether the last value contains a document's `_id` of a type that is not parsed here. It then includes all bytes
    /// that follow.
    pub is_left_open: bool,
}

/// Parses all values of a key.
/// # Errors
/// `Overflow` for a key that ends within a value, 50811 for an unknown type byte.
pub(crate) fn parts(key: &[u8]) -> Result<Parts<'_>> {
    let mut reader = Reader { rest: key, is_left_open: false };
    let mut values = Vec::with_capacity(8);
    while !reader.rest.is_empty() {
        let start = key.len() - reader.rest.len();
        let mut kind = reader.byte()?;
        if matches!(kind, LESS | GREATER) {
            kind = reader.byte()?;
        }
        if kind == END {
            break;
        }
        let part = reader.value(kind, 0)?;
        values.push((part, start..key.len() - reader.rest.len()));
    }
    Ok(Parts { values, is_left_open: reader.is_left_open })
}

struct Reader<'k> {
    rest: &'k [u8],
    is_left_open: bool,
}

impl<'k> Reader<'k> {
    fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.rest.split_first().ok_or_else(cut)?;
        self.rest = rest;
        Ok(first)
    }

    fn bytes(&mut self, count: usize) -> Result<&'k [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or_else(cut)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A big-endian number of up to eight bytes.
    fn unsigned(&mut self, count: usize) -> Result<u64> {
        Ok(self.bytes(count)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The bytes before the next zero byte.
    fn name(&mut self) -> Result<&'k [u8]> {
        let length = self.rest.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        let name = self.bytes(length)?;
        self.bytes(1)?;
        Ok(name)
    }

    fn text(&mut self) -> Result<()> {
        loop {
            self.name()?;
            if self.rest.first() != Some(&TEXT_GOES_ON) {
                return Ok(());
            }
            self.bytes(1)?;
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Part<'k>> {
        if depth > DEPTH_MAX {
            return Err(cut());
        }
        match kind {
            NULL => return Ok(Part::Null),
            FALSE | TRUE => return Ok(Part::Boolean(kind == TRUE)),
            NOT_A_NUMBER..=LARGE_POSITIVE => return self.number(kind),
            TIMESTAMP | DATE => {
                let (seconds, increment) = (self.unsigned(4)? as u32, self.unsigned(4)? as u32);
                return Ok(Part::Timestamp(Timestamp { seconds, increment }));
            }
            BINARY => return self.binary(),
            OBJECT => return self.object(depth),
            MIN_KEY | UNDEFINED | MAX_KEY => {}
            STRING | CODE => self.text()?,
            OBJECT_ID => drop(self.bytes(size_of::<ObjectId>())?),
            ARRAY => self.array(depth)?,
            REGEX => {
                self.name()?;
                self.name()?;
            }
            DB_POINTER => {
                let length = self.unsigned(4)? as usize;
                self.bytes(length)?;
                self.bytes(size_of::<ObjectId>())?;
            }
            CODE_WITH_SCOPE => {
                self.text()?;
                self.object(depth)?;
            }
            other => {
                return Err(Failure::new(
                    ErrorCode(50811),
                    format!("no value begins with the byte {other} in a resume token"),
                ));
            }
        }
        Ok(Part::Other)
    }

    fn number(&mut self, kind: u8) -> Result<Part<'k>> {
        let (integer, is_negative) = match kind {
            ZERO => return Ok(Part::Integer(0)),
            NOT_A_NUMBER => return Ok(Part::Other),
            LARGE_NEGATIVE | SMALL_NEGATIVE | SMALL_POSITIVE | LARGE_POSITIVE => {
                self.bytes(8)?;
                return Ok(Part::Other);
            }
            // The bits of a negative number are inverted.
            negative if negative < ZERO => {
                let count = usize::from(SMALL_NEGATIVE - negative);
                let bits = self.unsigned(count)?;
                (!bits & (u64::MAX >> (64 - 8 * count)), true)
            }
            positive => (self.unsigned(usize::from(positive - SMALL_POSITIVE))?, false),
        };
        if integer & 1 != 0 {
            // The bytes of a fraction follow.
            self.bytes(8)?;
            return Ok(Part::Other);
        }
        let magnitude = i64::try_from(integer >> 1).unwrap_or(i64::MAX);
        let number = if is_negative { -magnitude } else { magnitude };
        Ok(i32::try_from(number).map_or(Part::Other, Part::Integer))
    }

    fn binary(&mut self) -> Result<Part<'k>> {
        let length = match self.byte()? {
            LONG_LENGTH => self.unsigned(4)? as usize,
            short => usize::from(short),
        };
        Ok(Part::Binary { subtype: self.byte()?, bytes: self.bytes(length)? })
    }

    fn object(&mut self, depth: usize) -> Result<Part<'k>> {
        // The type byte before the name is there for sorting; the value has its own.
        while self.byte()? != 0 {
            let name = self.name()?;
            if depth == 0 && name == DOCUMENT_KEY && !self.begins_with_object_id() {
                self.is_left_open = true;
                self.rest = &[];
                break;
            }
            let kind = self.byte()?;
            self.value(kind, depth + 1)?;
        }
        Ok(Part::Object)
    }

    /// Whether an object follows whose first field is an ObjectId, or the beginning of such an object. Other types of
    /// `_id` are encoded in tokens as in index keys.
    fn begins_with_object_id(&self) -> bool {
        const BEGINNING: &[u8] = &[OBJECT, OBJECT_ID, b'_', b'i', b'd', 0, OBJECT_ID];
        let length = BEGINNING.len().min(self.rest.len());
        self.rest.starts_with(&BEGINNING[..length])
    }

    fn array(&mut self, depth: usize) -> Result<()> {
        loop {
            match self.byte()? {
                0 => return Ok(()),
                kind => drop(self.value(kind, depth + 1)?),
            }
        }
    }
}

/// The failure of a token that ends too early.
/// Source: MongoDB's answers to tokens that were cut.
pub(crate) fn cut() -> Failure {
    Failure::new(ErrorCode::OVERFLOW, "Bad resume token: it ends too early")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &[u8]) -> Vec<Part<'_>> {
        parts(key).expect("a key").values.into_iter().map(|(part, _)| part).collect()
    }

    #[test]
    fn values_are_read_up_to_the_end() {
        assert_eq!(read(&[]), []);
        assert_eq!(read(&[END, 0xff]), []);
        assert_eq!(read(&[ZERO, 0x2b, 4, 0x2c, 1, 0]), [Part::Integer(0), Part::Integer(2), Part::Integer(128)]);
        assert_eq!(read(&[0x27, 0xfd, TRUE, NULL]), [Part::Integer(-1), Part::Boolean(true), Part::Null]);
        assert_eq!(read(&[STRING, b'a', 0, 0xff, b'b', 0, MAX_KEY]), [Part::Other, Part::Other]);
        assert_eq!(read(&[BINARY, 1, 4, 9]), [Part::Binary { subtype: 4, bytes: &[9] }]);
        assert_eq!(read(&[OBJECT, STRING, b'a', 0, STRING, b'b', 0, 0, ZERO]), [Part::Object, Part::Integer(0)]);
        let time = Part::Timestamp(Timestamp { seconds: 1, increment: 2 });
        assert_eq!(read(&[TIMESTAMP, 0, 0, 0, 1, 0, 0, 0, 2, END]), [time]);
    }

    #[test]
    fn malformed_keys_are_refused() {
        let code = |key: &[u8]| parts(key).expect_err("no key").code().0;
        for cut in [&[TIMESTAMP][..], &[BINARY, 2, 4, 1], &[OBJECT], &[STRING, b'a'], &[0x2c, 1], &[LESS]] {
            assert_eq!(code(cut), ErrorCode::OVERFLOW.0, "{cut:02x?}");
        }
        for unknown in [&[0xff][..], &[0x00], &[ZERO, 0xde], &[OBJECT, STRING, b'a', 0, 0xff]] {
            assert_eq!(code(unknown), 50811, "{unknown:02x?}");
        }
        assert_eq!(code(&vec![ARRAY; 1000]), ErrorCode::OVERFLOW.0);
    }
}
