//! Reads encoded documents in place.

use crate::skip::{Skip, name_length};
use crate::validate::{self, BsonError};
use crate::{ArrayBuf, Decimal128, DocumentBuf, EncodedValue, ObjectId, Timestamp, Type, ValueRef};
use std::fmt;

/// A whole encoded document: length, elements, closing zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DocumentRef<'a>(&'a [u8]);

/// An array: a document whose names are its indexes. Nothing here reads or trusts them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ArrayRef<'a>(DocumentRef<'a>);

/// A name and its value.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    /// The field's name; in an array, the index that the writer gave.
    pub name: &'a str,
    /// The field's value.
    pub value: ValueRef<'a>,
}

/// A field in its encoded form.
#[derive(Clone, Copy)]
pub struct EncodedElement<'a> {
    kind: Type,
    name: &'a [u8],
    body: &'a [u8],
    encoded: &'a [u8],
}

impl<'a> EncodedElement<'a> {
    /// The field's name.
    pub fn name_bytes(&self) -> &'a [u8] {
        self.name
    }

    /// The value's type.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// The field's value; `None` if a text in it is not valid.
    pub fn value(&self) -> Option<ValueRef<'a>> {
        decode(self.kind, self.body)
    }

    /// Name and value; `None` if a text in them is not valid.
    pub fn decode(&self) -> Option<Element<'a>> {
        Some(Element { name: std::str::from_utf8(self.name).ok()?, value: self.value()? })
    }

    /// Length of the value in bytes.
    pub fn value_bytes(&self) -> usize {
        self.body.len()
    }

    /// Offset of the field in the document that it was read from, in bytes.
    pub fn offset_in(&self, document: DocumentRef<'a>) -> usize {
        self.encoded.as_ptr().addr().wrapping_sub(document.0.as_ptr().addr())
    }

    /// Type, name and value.
    pub(crate) fn as_bytes(&self) -> &'a [u8] {
        self.encoded
    }
}

const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

impl<'a> DocumentRef<'a> {
    /// The document without fields.
    pub const EMPTY: DocumentRef<'static> = DocumentRef(&EMPTY);

    /// Checks all of `bytes`, which must be exactly one document nested at most [`crate::MAX_DEPTH_ACCEPTED`] deep.
    /// # Errors
    /// [`BsonError`] names the error and the byte at which it is.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BsonError> {
        validate::document(bytes)?;
        Ok(Self(bytes))
    }

    /// As [`Self::parse`], for a document that the server wrapped around one that [`Self::parse`] accepts. The inner
    /// document may be up to [`crate::LEVELS_AROUND_MAX`] levels deeper.
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_around(bytes: &'a [u8]) -> Result<Self, BsonError> {
        validate::document_of_levels(bytes, crate::MAX_DEPTH_ACCEPTED + 1 + crate::LEVELS_AROUND_MAX)?;
        Ok(Self(bytes))
    }

    /// Takes bytes that were parsed before and kept under a checksum since.
    pub fn trusted(bytes: &'a [u8]) -> Self {
        Self(if bytes.len() < EMPTY.len() { &EMPTY } else { bytes })
    }

    /// The encoded document, length first.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Encoded length in bytes.
    pub fn len_bytes(self) -> usize {
        self.0.len()
    }

    /// Whether the document has no fields.
    pub fn is_empty(self) -> bool {
        self.0.len() <= EMPTY.len()
    }

    /// The fields in their order, duplicates included.
    pub fn iter(self) -> Elements<'a> {
        Elements { rest: &self.0[4..self.0.len() - 1] }
    }

    /// The first field with this name.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        self.get_encoded(name)?.value()
    }

    /// As [`Self::get`], without decoding the value.
    #[inline]
    pub fn get_encoded(self, name: &str) -> Option<EncodedValue<'a>> {
        let (fields, name) = (&self.0[..self.0.len() - 1], name.as_bytes());
        let mut at = 4;
        // Only the lengths of other fields are read, on which expressions and filters spend most of their time.
        while let Some((&kind, rest)) = fields.get(at..).and_then(<[u8]>::split_first) {
            let field_bytes = name_length(rest)?;
            let body = at + 1 + field_bytes + 1;
            let length = Skip::of(kind).length(fields, body)?;
            // Most names differ in their length or first byte, which is compared without a call.
            if field_bytes == name.len() && rest.first() == name.first().or(Some(&0)) && rest[..field_bytes] == *name {
                return Some(EncodedValue::new(Type::from_byte(kind)?, fields.get(body..body + length)?));
            }
            at = body + length;
        }
        None
    }

    /// The value of the field at an offset that [`EncodedElement::offset_in`] returned.
    pub fn value_at(self, offset: usize) -> Option<ValueRef<'a>> {
        let mut fields = Elements { rest: self.0[..self.0.len() - 1].get(offset..)? };
        let (kind, _, body) = fields.next_encoded()?;
        decode(kind, body)
    }

    /// The first field.
    pub fn first(self) -> Option<Element<'a>> {
        self.iter().next()
    }

    /// The first field's name.
    pub fn first_name(self) -> Option<&'a str> {
        let field = self.iter().encoded().next()?;
        std::str::from_utf8(field.name).ok()
    }

    /// The first field's value.
    pub fn first_value(self) -> Option<ValueRef<'a>> {
        self.iter().encoded().next()?.value()
    }

    /// Number of fields; walks the document.
    pub fn count(self) -> usize {
        let mut elements = self.iter();
        std::iter::from_fn(|| elements.next_encoded()).count()
    }

    /// A copy that owns its bytes.
    #[allow(clippy::wrong_self_convention)]
    pub fn to_owned(self) -> DocumentBuf {
        DocumentBuf::from_trusted(self.0.to_vec())
    }
}

impl<'a> IntoIterator for DocumentRef<'a> {
    type Item = Element<'a>;
    type IntoIter = Elements<'a>;
    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl<'a> ArrayRef<'a> {
    /// The array without elements.
    pub const EMPTY: ArrayRef<'static> = ArrayRef(DocumentRef::EMPTY);

    /// Reads a document as an array.
    pub fn from_document(document: DocumentRef<'a>) -> Self {
        Self(document)
    }

    /// The array as a document.
    pub fn as_document(self) -> DocumentRef<'a> {
        self.0
    }

    /// Whether the array has no elements.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Number of elements; walks the array.
    pub fn count(self) -> usize {
        self.0.count()
    }

    /// The values in their order.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> + Clone {
        let mut elements = self.0.iter();
        std::iter::from_fn(move || {
            let (kind, _, body) = elements.next_encoded()?;
            decode(kind, body)
        })
    }

    /// As [`Self::iter`], without decoding the values.
    #[inline]
    pub fn encoded(self) -> impl Iterator<Item = EncodedValue<'a>> {
        let mut elements = self.0.iter();
        std::iter::from_fn(move || {
            let (kind, _, body) = elements.next_encoded()?;
            Some(EncodedValue::new(kind, body))
        })
    }

    /// The value at a position, counted from 0.
    pub fn get(self, index: usize) -> Option<ValueRef<'a>> {
        self.iter().nth(index)
    }

    /// A copy that owns its bytes.
    #[allow(clippy::wrong_self_convention)]
    pub fn to_owned(self) -> ArrayBuf {
        ArrayBuf::from_document(self.0.to_owned())
    }
}

/// Walks a document's fields.
#[derive(Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Continues another walk that had these fields left.
    pub fn resume(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The fields that are left, encoded.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The fields that are left, not decoded. Callers that skip or copy most of them need not look inside.
    pub fn encoded(mut self) -> impl Iterator<Item = EncodedElement<'a>> {
        std::iter::from_fn(move || {
            let before = self.rest;
            let (kind, name, body) = self.next_encoded()?;
            Some(EncodedElement { kind, name, body, encoded: &before[..before.len() - self.rest.len()] })
        })
    }

    /// The next field, encoded: type, name, body. Names compare faster as bytes.
    #[inline]
    pub(crate) fn next_encoded(&mut self) -> Option<(Type, &'a [u8], &'a [u8])> {
        let (&first, rest) = self.rest.split_first()?;
        let kind = Type::from_byte(first)?;
        let end = name_length(rest)?;
        let (name, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
        let (body, rest) = rest.split_at_checked(Skip::of(first).length(rest, 0)?)?;
        self.rest = rest;
        Some((kind, name, body))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let (kind, name, body) = self.next_encoded()?;
        Some(Element { name: std::str::from_utf8(name).ok()?, value: decode(kind, body)? })
    }
}

#[inline]
pub(crate) fn fixed<const N: usize>(body: &[u8]) -> Option<[u8; N]> {
    body.get(..N)?.try_into().ok()
}

/// A length-prefixed string's text, without its closing zero.
fn text(body: &[u8]) -> Option<&str> {
    let length = i32::from_le_bytes(fixed(body)?);
    let bytes = body.get(4..4 + usize::try_from(length).ok()?.checked_sub(1)?)?;
    std::str::from_utf8(bytes).ok()
}

fn zero_terminated(body: &[u8]) -> Option<(&str, &[u8])> {
    let end = body.iter().position(|&byte| byte == 0)?;
    Some((std::str::from_utf8(&body[..end]).ok()?, &body[end + 1..]))
}

/// The scope after the code, from the body of a [`Type::JavaScriptWithScope`].
pub(crate) fn scope(body: &[u8]) -> Option<DocumentRef<'_>> {
    let code_bytes = usize::try_from(i32::from_le_bytes(fixed(body.get(4..)?)?)).ok()?;
    Some(DocumentRef::trusted(body.get(code_bytes.checked_add(8)?..)?))
}

/// Decodes a body that [`Skip::length`] measured.
#[inline]
pub(crate) fn decode(kind: Type, body: &[u8]) -> Option<ValueRef<'_>> {
    Some(match kind {
        Type::Double => ValueRef::Double(f64::from_le_bytes(fixed(body)?)),
        Type::String => ValueRef::String(text(body)?),
        Type::Document => ValueRef::Document(DocumentRef::trusted(body)),
        Type::Array => ValueRef::Array(ArrayRef(DocumentRef::trusted(body))),
        Type::Binary => ValueRef::Binary { subtype: *body.get(4)?, bytes: body.get(5..)? },
        Type::Undefined => ValueRef::Undefined,
        Type::ObjectId => ValueRef::ObjectId(ObjectId(fixed(body)?)),
        Type::Boolean => ValueRef::Boolean(*body.first()? != 0),
        Type::DateTime => ValueRef::DateTime(i64::from_le_bytes(fixed(body)?)),
        Type::Null => ValueRef::Null,
        Type::Regex => {
            let (pattern, rest) = zero_terminated(body)?;
            ValueRef::Regex { pattern, options: zero_terminated(rest)?.0 }
        }
        Type::DbPointer => ValueRef::DbPointer {
            namespace: text(body)?,
            id: ObjectId(fixed(body.get(body.len().checked_sub(12)?..)?)?),
        },
        Type::JavaScript => ValueRef::JavaScript(text(body)?),
        Type::Symbol => ValueRef::Symbol(text(body)?),
        Type::JavaScriptWithScope => ValueRef::JavaScriptWithScope { code: text(body.get(4..)?)?, scope: scope(body)? },
        Type::Int32 => ValueRef::Int32(i32::from_le_bytes(fixed(body)?)),
        Type::Timestamp => ValueRef::Timestamp(Timestamp {
            increment: u32::from_le_bytes(fixed(body)?),
            seconds: u32::from_le_bytes(fixed(body.get(4..)?)?),
        }),
        Type::Int64 => ValueRef::Int64(i64::from_le_bytes(fixed(body)?)),
        Type::Decimal128 => ValueRef::Decimal128(Decimal128(fixed(body)?)),
        Type::MinKey => ValueRef::MinKey,
        Type::MaxKey => ValueRef::MaxKey,
    })
}

impl fmt::Debug for DocumentRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|element| (element.name, element.value))).finish()
    }
}

impl fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One value of each type.
    fn one_of_each() -> Vec<crate::Value> {
        let document = DocumentBuf::new().with("x", 1).with("text", "y");
        let borrowed = [
            ValueRef::Double(1.5),
            ValueRef::String("some text"),
            ValueRef::String(""),
            ValueRef::Document(document.as_ref()),
            ValueRef::Array(ArrayRef(document.as_ref())),
            ValueRef::Binary { subtype: 3, bytes: b"bytes" },
            ValueRef::Undefined,
            ValueRef::ObjectId(ObjectId([7; 12])),
            ValueRef::Boolean(true),
            ValueRef::DateTime(-1),
            ValueRef::Null,
            ValueRef::Regex { pattern: "a.*b", options: "i" },
            ValueRef::Regex { pattern: "", options: "" },
            ValueRef::DbPointer { namespace: "a.b", id: ObjectId([1; 12]) },
            ValueRef::JavaScript("1 + 1"),
            ValueRef::Symbol("symbol"),
            ValueRef::JavaScriptWithScope { code: "x", scope: document.as_ref() },
            ValueRef::Int32(-5),
            ValueRef::Timestamp(Timestamp { seconds: 1, increment: 2 }),
            ValueRef::Int64(1 << 40),
            ValueRef::Decimal128(Decimal128([9; 16])),
            ValueRef::MinKey,
            ValueRef::MaxKey,
        ];
        borrowed.into_iter().map(ValueRef::to_value).collect()
    }

    #[test]
    fn a_field_behind_any_other_is_found_and_nothing_outside_is_read() {
        for value in one_of_each() {
            for name in ["", "a", "seven77", "eight888", "a name of more than two words"] {
                let document = DocumentBuf::new().with(name, value.as_ref()).with("wanted", 7);
                let document = document.as_ref();
                assert!(matches!(document.get("wanted"), Some(ValueRef::Int32(7))), "{name} {value:?}");
                assert_eq!(format!("{:?}", document.get(name)), format!("{:?}", Some(value.as_ref())), "{name}");
                assert_eq!(document.get(&format!("{name}x")).map(|_| ()), None);
                assert_eq!(document.iter().map(|field| field.name).collect::<Vec<_>>(), [name, "wanted"]);
                assert_eq!(document.get(&format!("{name}\0")).map(|_| ()), None);
                // Walks of damaged documents end too: cut anywhere, and with each byte changed.
                let bytes = document.as_bytes();
                for at in 0..bytes.len() {
                    let cut = DocumentRef::trusted(&bytes[..at]);
                    let _ = (cut.get("wanted"), cut.iter().count());
                    for changed in [0, 1, 0x0b, 0x7f, 0x80, 0xff] {
                        let mut bytes = bytes.to_vec();
                        bytes[at] = changed;
                        let damaged = DocumentRef::trusted(&bytes);
                        let found = damaged.iter().find(|field| field.name == "wanted").map(|field| field.value.kind());
                        let reached = damaged.iter().rest_of_all();
                        let got = damaged.get("wanted").map(ValueRef::kind);
                        assert!(got == found || reached, "{name} {value:?} {at} {changed}");
                    }
                }
            }
        }
    }

    impl Elements<'_> {
        /// Whether a walk stops before the end, at a field whose name is not valid text. `get` skips such a field.
        fn rest_of_all(mut self) -> bool {
            while self.next().is_some() {}
            !self.rest.is_empty()
        }
    }

    #[test]
    fn a_value_is_read_where_its_field_begins() {
        let document = one_of_each().iter().fold(DocumentBuf::new(), |document, value| document.with("name", value));
        let document = document.as_ref();
        for (encoded, element) in document.iter().encoded().zip(document) {
            let found = document.value_at(encoded.offset_in(document));
            assert_eq!(format!("{found:?}"), format!("{:?}", Some(element.value)));
        }
        assert!(document.value_at(document.len_bytes()).is_none());
    }

    #[test]
    fn fields_are_found_by_their_whole_names() {
        let names = ["a", "ab", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnopqrs", "b", ""];
        let document =
            names.iter().zip(0_i32..).fold(DocumentBuf::new(), |document, (name, number)| document.with(name, number));
        for (name, number) in names.iter().zip(0_i32..) {
            let found = document.as_ref().get(name);
            assert!(matches!(found, Some(ValueRef::Int32(found)) if found == number), "{name}: {found:?}");
        }
        assert!(document.as_ref().get("abcdefgx").is_none());
    }
}
