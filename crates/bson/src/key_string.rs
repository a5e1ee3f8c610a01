//! Memcomparable keys: bytes whose order is the canonical order of the values they encode.
//!
//! **Invariant:** for any two values, comparing keys as bytes gives [`crate::order::compare`] (reversed for descending
//! fields). Equal values have equal keys, so `1`, `1.0` and `NumberDecimal("1.00")` are one key. No key is a prefix of
//! another value's key, so a compound key is a concatenation and its leading fields are a prefix of its bytes.
//!
//! A key begins with the value's bracket (see [`crate::order::rank`]), which numbers and booleans refine. Then:
//! - strings: the text, with bytes 0 and 1 written as `01 01` and `01 02`, up to a zero;
//! - documents: for each field its bracket, name and key, up to a zero; arrays the same without bracket and name;
//! - binary data: its length (one byte below 255, else `ff` and four), subtype, bytes;
//! - dates and ObjectIds and timestamps: fixed width, big endian; numbers: see the module `number`.
//!
//! Under a [`StringOrder`] with a collator, a string's key holds the string's sort key, written as text, in the place
//! of its text ([`StringOrder::in_keys`]). [`decode`] returns that text.
//!
//! A descending field has all its bytes inverted. Types that compare equal are not told apart, so [`decode`] returns
//! numbers as the simplest type that holds them, and symbols as strings.

mod collated;
mod decode;
mod number;

pub use decode::{decode, leading_bytes};

use crate::order::{bracket, rank};
use crate::string_order::StringOrder;
use crate::{ArrayRef, DocumentRef, ValueRef};

/// The direction in which a key's field is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Ends texts, documents and arrays. It is below every byte that may continue them.
const END: u8 = 0x00;
/// Comes before a byte 0 or 1 of a text, which is written as itself plus one.
const ESCAPE: u8 = 0x01;
/// Comes before a length of four bytes.
const LONG_LENGTH: u8 = 0xff;

/// Sorts after every field of either direction: a prefix of fields with this byte is the end of all keys with that
/// prefix.
pub const MAX_BYTE: u8 = 0xff;

/// Appends one value's key. Does not allocate beyond the buffer's growth.
#[inline]
pub fn append(buffer: &mut Vec<u8>, value: ValueRef<'_>, direction: Direction) {
    let start = buffer.len();
    put(buffer, value);
    direct(&mut buffer[start..], direction);
}

impl StringOrder {
    /// As [`append`], with strings in this order.
    #[inline]
    pub fn append_key(&self, buffer: &mut Vec<u8>, value: ValueRef<'_>, direction: Direction) {
        let Some(collator) = self.collator() else { return append(buffer, value, direction) };
        let start = buffer.len();
        collated::put(buffer, value, collator);
        direct(&mut buffer[start..], direction);
    }
}

/// Appends bytes that sort before every value of the bracket `rank` and after every value of the one before.
pub fn append_bracket_start(buffer: &mut Vec<u8>, rank: u8, direction: Direction) {
    match direction {
        Direction::Ascending => buffer.push(rank - 1),
        Direction::Descending => buffer.push(!(last_of_bracket(rank) + 1)),
    }
}

/// Appends bytes that sort after every value of the bracket `rank` and before every value of the next one.
pub fn append_bracket_end(buffer: &mut Vec<u8>, rank: u8, direction: Direction) {
    match direction {
        Direction::Ascending => buffer.push(last_of_bracket(rank) + 1),
        Direction::Descending => buffer.push(!(rank - 1)),
    }
}

fn last_of_bracket(rank: u8) -> u8 {
    match rank {
        bracket::NUMBER => number::INFINITY,
        bracket::BOOLEAN => bracket::BOOLEAN_TRUE,
        _ => rank,
    }
}

fn direct(key: &mut [u8], direction: Direction) {
    if direction == Direction::Descending {
        invert(key);
    }
}

fn invert(key: &mut [u8]) {
    for byte in key {
        *byte = !*byte;
    }
}

/// Appends a value's ascending key.
fn put(buffer: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Int32(number) => return number::put_integer(buffer, i64::from(number)),
        ValueRef::Int64(number) => return number::put_integer(buffer, number),
        ValueRef::Double(number) => return number::put_double(buffer, number),
        ValueRef::Decimal128(number) => return number::put_decimal(buffer, number),
        ValueRef::Boolean(false) => return buffer.push(bracket::BOOLEAN),
        ValueRef::Boolean(true) => return buffer.push(bracket::BOOLEAN_TRUE),
        _ => buffer.push(rank(value.kind())),
    }
    match value {
        ValueRef::ObjectId(id) => buffer.extend_from_slice(&id.0),
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::JavaScript(text) => put_text(buffer, text),
        ValueRef::DateTime(milliseconds) => {
            // Flipping the sign bit puts negative numbers first.
            buffer.extend_from_slice(&(milliseconds ^ i64::MIN).to_be_bytes());
        }
        ValueRef::Document(document) => put_document(buffer, document),
        ValueRef::Array(array) => put_array(buffer, array),
        ValueRef::Binary { subtype, bytes } => {
            put_length(buffer, bytes.len());
            buffer.push(subtype);
            buffer.extend_from_slice(bytes);
        }
        ValueRef::Timestamp(timestamp) => {
            buffer.extend_from_slice(&timestamp.seconds.to_be_bytes());
            buffer.extend_from_slice(&timestamp.increment.to_be_bytes());
        }
        ValueRef::Regex { pattern, options } => {
            put_text(buffer, pattern);
            put_text(buffer, options);
        }
        ValueRef::DbPointer { namespace, id } => {
            put_length(buffer, namespace.len());
            buffer.extend_from_slice(namespace.as_bytes());
            buffer.extend_from_slice(&id.0);
        }
        ValueRef::JavaScriptWithScope { code, scope } => {
            put_text(buffer, code);
            put_document(buffer, scope);
        }
        _ => {}
    }
}

fn put_text(buffer: &mut Vec<u8>, text: &str) {
    // A fold without an early exit lets the compiler test many bytes at once. Escapes are very rare.
    let needs_escape = text.bytes().fold(0, |found, byte| found | u8::from(byte <= ESCAPE)) != 0;
    if needs_escape {
        for byte in text.bytes() {
            if byte <= ESCAPE {
                buffer.push(ESCAPE);
                buffer.push(byte + 1);
            } else {
                buffer.push(byte);
            }
        }
    } else {
        buffer.extend_from_slice(text.as_bytes());
    }
    buffer.push(END);
}

fn put_length(buffer: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short != LONG_LENGTH => buffer.push(short),
        _ => {
            buffer.push(LONG_LENGTH);
            buffer.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

fn put_document(buffer: &mut Vec<u8>, document: DocumentRef<'_>) {
    for element in document {
        buffer.push(rank(element.value.kind()));
        put_text(buffer, element.name);
        put(buffer, element.value);
    }
    buffer.push(END);
}

fn put_array(buffer: &mut Vec<u8>, array: ArrayRef<'_>) {
    for value in array.iter() {
        put(buffer, value);
    }
    buffer.push(END);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, DocumentBuf, ObjectId, Type};

    fn key(value: ValueRef<'_>) -> Vec<u8> {
        let mut buffer = Vec::new();
        append(&mut buffer, value, Direction::Ascending);
        buffer
    }

    #[test]
    fn common_keys_are_short() {
        assert_eq!(key(ValueRef::ObjectId(ObjectId([7; 12]))).len(), 13);
        assert_eq!(key(ValueRef::Int32(0)).len(), 1);
        assert_eq!(key(ValueRef::Int32(100)).len(), 2);
        assert_eq!(key(ValueRef::Int32(i32::MIN)).len(), 6);
        assert_eq!(key(ValueRef::Int64(i64::MAX)).len(), 9);
        assert_eq!(key(ValueRef::Int64(i64::MIN)).len(), 9);
        assert_eq!(key(ValueRef::Double(0.1)).len(), 9);
        assert_eq!(key(ValueRef::Double(1.5)).len(), 10);
        assert_eq!(key(ValueRef::String("abc")).len(), 5);
        assert_eq!(key(ValueRef::Binary { subtype: 4, bytes: &[0; 16] }).len(), 19);
    }

    #[test]
    fn equal_numbers_share_a_key() {
        let decimal = |text| ValueRef::Decimal128(Decimal128::parse(text).expect(text));
        let one = key(ValueRef::Int32(1));
        for other in [ValueRef::Int64(1), ValueRef::Double(1.0), decimal("1"), decimal("1.00"), decimal("10E-1")] {
            assert_eq!(key(other), one, "{other:?}");
        }
        assert_eq!(key(decimal("-0E+3")), key(ValueRef::Double(-0.0)));
        assert_eq!(key(decimal("0.5")), key(ValueRef::Double(0.5)));
        assert_ne!(key(decimal("0.1")), key(ValueRef::Double(0.1)));
        assert_eq!(key(decimal("-9223372036854775808")), key(ValueRef::Int64(i64::MIN)));
    }

    #[test]
    fn brackets_enclose_their_values_and_no_others() {
        let document = DocumentBuf::new().with("a", 1);
        let values = [
            ValueRef::MinKey,
            ValueRef::Undefined,
            ValueRef::Null,
            ValueRef::Double(f64::NAN),
            ValueRef::Double(f64::INFINITY),
            ValueRef::String(""),
            ValueRef::Document(document.as_ref()),
            ValueRef::Array(ArrayRef::EMPTY),
            ValueRef::Boolean(false),
            ValueRef::Boolean(true),
            ValueRef::DateTime(i64::MIN),
            ValueRef::MaxKey,
        ];
        let kinds = [Type::MinKey, Type::Undefined, Type::Null, Type::Int32, Type::String, Type::Document, Type::Array];
        for kind in kinds.into_iter().chain([Type::Boolean, Type::DateTime, Type::MaxKey]) {
            for direction in [Direction::Ascending, Direction::Descending] {
                let (mut start, mut end) = (Vec::new(), Vec::new());
                append_bracket_start(&mut start, rank(kind), direction);
                append_bracket_end(&mut end, rank(kind), direction);
                for value in values {
                    let mut key = Vec::new();
                    append(&mut key, value, direction);
                    let inside = start < key && key < end;
                    assert_eq!(inside, rank(value.kind()) == rank(kind), "{value:?} in {kind:?}, {direction:?}");
                }
            }
        }
    }
}
