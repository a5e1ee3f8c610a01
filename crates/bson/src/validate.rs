//! The check of a document's lengths, which no other place repeats.

use crate::skip::{Skip, name_length_and_ascii};
use crate::{MAX_DEPTH_ACCEPTED, MAX_INTERNAL_DOCUMENT_BYTES, Type};
use std::fmt;

/// Why bytes are not a document. Offsets are in bytes from the start of the outermost document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BsonError {
    /// A length does not fit the bytes around it.
    BadLength {
        /// Offset of the length.
        offset: usize,
    },
    /// There is no such element type.
    UnknownType {
        /// Offset of the type's byte.
        offset: usize,
        /// The type's byte.
        byte: u8,
    },
    /// A string that is not UTF-8, or lacks its closing zero.
    BadString {
        /// Offset of the string.
        offset: usize,
    },
    /// A boolean that is neither 0 nor 1.
    BadBoolean {
        /// Offset of the byte.
        offset: usize,
    },
    /// Nested deeper than [`MAX_DEPTH_ACCEPTED`].
    TooDeep,
    /// Larger than documents in a message may be.
    TooLarge {
        /// The document's length in bytes.
        length: usize,
    },
}

impl fmt::Display for BsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadLength { offset } => write!(f, "invalid BSON: bad length at offset {offset}"),
            Self::UnknownType { offset, byte } => {
                write!(f, "invalid BSON: unknown type {byte:#04x} at offset {offset}")
            }
            Self::BadString { offset } => write!(f, "invalid BSON: string at offset {offset} is not valid UTF-8"),
            Self::BadBoolean { offset } => write!(f, "invalid BSON: boolean at offset {offset} is neither 0 nor 1"),
            Self::TooDeep => write!(f, "BSON nested deeper than {MAX_DEPTH_ACCEPTED} levels"),
            Self::TooLarge { length } => {
                write!(f, "BSON document of {length} bytes, more than {MAX_INTERNAL_DOCUMENT_BYTES}")
            }
        }
    }
}

impl std::error::Error for BsonError {}

pub(crate) fn length_at(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.get(..4)?;
    usize::try_from(i32::from_le_bytes(prefix.try_into().ok()?)).ok()
}

/// Checks that `bytes` is exactly one document, to its leaves.
pub(crate) fn document(bytes: &[u8]) -> Result<(), BsonError> {
    document_of_levels(bytes, MAX_DEPTH_ACCEPTED + 1)
}

/// As [`document`], for a document that may have `levels` levels, itself included.
pub(crate) fn document_of_levels(bytes: &[u8], levels: usize) -> Result<(), BsonError> {
    if bytes.len() > 48_000_000 {
        return Err(BsonError::TooLarge { length: bytes.len() });
    }
    nested(bytes, 0, levels)
}

/// Checks a nested document. `base` is the offset of `bytes` in the outermost document, for errors; `levels` is the
/// greatest number of levels, its own included.
fn nested(bytes: &[u8], base: usize, levels: usize) -> Result<(), BsonError> {
    if levels == 0 {
        return Err(BsonError::TooDeep);
    }
    if bytes.len() < 5 || length_at(bytes) != Some(bytes.len()) || bytes[bytes.len() - 1] != 0 {
        return Err(BsonError::BadLength { offset: base });
    }
    let end = bytes.len() - 1;
    let mut position = 4;
    while position < end {
        let byte = bytes[position];
        let kind = Type::from_byte(byte).ok_or(BsonError::UnknownType { offset: base + position, byte })?;
        let name_start = position + 1;
        let body_start = name_start + name(&bytes[name_start..end], base + name_start)? + 1;
        let length = Skip::of(byte)
            .length(&bytes[..end], body_start)
            .ok_or(BsonError::BadLength { offset: base + body_start })?;
        body(kind, &bytes[body_start..body_start + length], base + body_start, levels)?;
        position = body_start + length;
    }
    Ok(())
}

/// Checks the name at the start of `bytes`. Returns its length, without its closing zero.
fn name(bytes: &[u8], offset: usize) -> Result<usize, BsonError> {
    let (length, is_ascii) = name_length_and_ascii(bytes).ok_or(BsonError::BadString { offset })?;
    if !is_ascii {
        utf8(&bytes[..length], offset)?;
    }
    Ok(length)
}

fn body(kind: Type, bytes: &[u8], offset: usize, levels: usize) -> Result<(), BsonError> {
    match kind {
        Type::String | Type::JavaScript | Type::Symbol => string(bytes, offset),
        Type::Document | Type::Array => nested(bytes, offset, levels - 1),
        Type::Boolean if bytes[0] > 1 => Err(BsonError::BadBoolean { offset }),
        Type::Binary if bytes[4] == crate::BinarySubtype::OLD => {
            let inner = length_at(&bytes[5..]).and_then(|length| length.checked_add(4));
            if inner == Some(bytes.len() - 5) { Ok(()) } else { Err(BsonError::BadLength { offset: offset + 5 }) }
        }
        Type::Regex => bytes[..bytes.len() - 1].split(|&byte| byte == 0).try_for_each(|part| utf8(part, offset)),
        Type::DbPointer => string(&bytes[..bytes.len() - 12], offset),
        Type::JavaScriptWithScope => {
            let bad = BsonError::BadLength { offset };
            let code = bytes.get(4..).ok_or(bad)?;
            let code_length = Skip::of(Type::String as u8).length(code, 0).ok_or(bad)?;
            string(&code[..code_length], offset + 4)?;
            nested(&code[code_length..], offset + 4 + code_length, levels - 1)
        }
        _ => Ok(()),
    }
}

/// A string's body: length, text, closing zero.
fn string(bytes: &[u8], offset: usize) -> Result<(), BsonError> {
    match bytes.split_last() {
        Some((0, front)) if front.len() >= 4 => utf8(&front[4..], offset + 4),
        _ => Err(BsonError::BadString { offset }),
    }
}

fn utf8(bytes: &[u8], offset: usize) -> Result<(), BsonError> {
    // Most texts are ASCII, which takes half as long to find out.
    if bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() {
        return Ok(());
    }
    Err(BsonError::BadString { offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocumentBuf, DocumentRef};

    #[test]
    fn a_lying_length_is_named_with_its_offset() {
        let mut document = DocumentBuf::new();
        document.append("a", "text");
        let good = document.as_ref().as_bytes().to_vec();
        assert!(DocumentRef::parse(&good).is_ok());
        let mut long = good.clone();
        long[7] = 200;
        assert_eq!(DocumentRef::parse(&long), Err(BsonError::BadLength { offset: 7 }));
        let mut outer = good.clone();
        outer[0] += 1;
        assert_eq!(DocumentRef::parse(&outer), Err(BsonError::BadLength { offset: 0 }));
        let mut kind = good;
        kind[4] = 0x55;
        assert_eq!(DocumentRef::parse(&kind), Err(BsonError::UnknownType { offset: 4, byte: 0x55 }));
    }

    #[test]
    fn names_are_text() {
        let mut document = DocumentBuf::new();
        document.append("näme", 1);
        let good = document.as_ref().as_bytes().to_vec();
        assert!(DocumentRef::parse(&good).is_ok());
        let mut bad = good.clone();
        bad[6] = 0xff;
        assert_eq!(DocumentRef::parse(&bad), Err(BsonError::BadString { offset: 5 }));
        let mut endless = good;
        endless[5..].fill(b'a');
        *endless.last_mut().expect("not empty") = 0;
        assert_eq!(DocumentRef::parse(&endless), Err(BsonError::BadString { offset: 5 }));
    }

    #[test]
    fn nesting_is_limited() {
        let nest = |levels: usize| {
            let mut inner = DocumentBuf::new();
            for _ in 1..levels {
                let mut outer = DocumentBuf::new();
                outer.append("a", &inner);
                inner = outer;
            }
            inner
        };
        // The outermost document is at depth 0.
        assert!(DocumentRef::parse(nest(MAX_DEPTH_ACCEPTED + 1).as_ref().as_bytes()).is_ok());
        assert_eq!(DocumentRef::parse(nest(MAX_DEPTH_ACCEPTED + 2).as_ref().as_bytes()), Err(BsonError::TooDeep));
    }
}
