//! Documents that own their bytes.

use crate::validate::BsonError;
use crate::writer::{put_element, put_index_name};
use crate::{ArrayRef, DocumentRef, ValueRef};
use std::fmt;

/// An encoded document that can grow by appending fields.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentBuf {
    bytes: Vec<u8>,
}

impl Default for DocumentBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl DocumentBuf {
    /// A document without fields.
    pub fn new() -> Self {
        Self { bytes: vec![5, 0, 0, 0, 0] }
    }

    /// A document without fields. It grows up to this many bytes without being copied.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut empty = Vec::with_capacity(bytes.max(5));
        empty.extend_from_slice(&[5, 0, 0, 0, 0]);
        Self { bytes: empty }
    }

    /// Checks encoded bytes and takes them over.
    /// # Errors
    /// As [`DocumentRef::parse`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BsonError> {
        DocumentRef::parse(&bytes)?;
        Ok(Self { bytes })
    }

    /// Takes over bytes that were parsed before; see [`DocumentRef::trusted`].
    pub fn from_trusted(bytes: Vec<u8>) -> Self {
        if bytes.len() < 5 { Self::new() } else { Self { bytes } }
    }

    /// The borrowed form.
    pub fn as_ref(&self) -> DocumentRef<'_> {
        DocumentRef::trusted(&self.bytes)
    }

    /// Encoded length in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The encoded bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends a field. If the name exists already, the document then has it twice.
    ///
    /// # Panics
    /// If `name` holds a zero byte, which BSON cannot express. Parsed names never do.
    pub fn append<'v>(&mut self, name: &str, value: impl Into<ValueRef<'v>>) -> &mut Self {
        self.bytes.pop();
        put_element(&mut self.bytes, name, value.into());
        self.close();
        self
    }

    /// [`Self::append`], for building in one expression.
    #[must_use]
    pub fn with<'v>(mut self, name: &str, value: impl Into<ValueRef<'v>>) -> Self {
        self.append(name, value);
        self
    }

    /// Appends all fields of another document.
    pub fn extend(&mut self, other: DocumentRef<'_>) -> &mut Self {
        self.bytes.pop();
        let encoded = other.as_bytes();
        self.bytes.extend_from_slice(&encoded[4..encoded.len() - 1]);
        self.close();
        self
    }

    fn close(&mut self) {
        self.bytes.push(0);
        let length = (self.bytes.len() as u32).to_le_bytes();
        self.bytes[..4].copy_from_slice(&length);
    }
}

/// An encoded array that can grow by appending values.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ArrayBuf {
    document: DocumentBuf,
    count: usize,
}

impl ArrayBuf {
    /// An array without elements.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a document as an array.
    pub fn from_document(document: DocumentBuf) -> Self {
        let count = document.as_ref().count();
        Self { document, count }
    }

    /// The borrowed form.
    pub fn as_ref(&self) -> ArrayRef<'_> {
        ArrayRef::from_document(self.document.as_ref())
    }

    /// Encoded length in bytes.
    pub fn len_bytes(&self) -> usize {
        self.document.len_bytes()
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Appends a value under the next index.
    pub fn push<'v>(&mut self, value: impl Into<ValueRef<'v>>) -> &mut Self {
        self.document.bytes.pop();
        put_index_name(&mut self.document.bytes, self.count, value.into());
        self.document.close();
        self.count += 1;
        self
    }
}

impl<'v, V: Into<ValueRef<'v>>> FromIterator<V> for ArrayBuf {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        let mut array = Self::new();
        for value in values {
            array.push(value);
        }
        array
    }
}

impl fmt::Debug for DocumentBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl fmt::Debug for ArrayBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ObjectId, Timestamp, Type};

    #[test]
    fn appended_fields_are_read_back() {
        let inner = DocumentBuf::new().with("x", 1_i32);
        let array: ArrayBuf = [1_i64, 2, 3].into_iter().collect();
        let mut document = DocumentBuf::new();
        document
            .append("d", 1.5)
            .append("s", "text")
            .append("o", &inner)
            .append("a", &array)
            .append("b", ValueRef::Binary { subtype: 0, bytes: &[1, 2] })
            .append("id", ObjectId([7; 12]))
            .append("t", true)
            .append("r", ValueRef::Regex { pattern: "^a", options: "i" })
            .append("p", ValueRef::DbPointer { namespace: "a.b", id: ObjectId([1; 12]) })
            .append("w", ValueRef::JavaScriptWithScope { code: "f()", scope: inner.as_ref() })
            .append("ts", Timestamp { seconds: 9, increment: 3 })
            .append("min", ValueRef::MinKey);
        let bytes = document.as_ref().as_bytes();
        let parsed = DocumentRef::parse(bytes).expect("what we write is valid");
        assert_eq!(parsed.count(), 12);
        assert_eq!(parsed.get("s").and_then(ValueRef::as_str), Some("text"));
        let ValueRef::JavaScriptWithScope { code, scope } = parsed.get("w").expect("present") else {
            panic!("not code with scope")
        };
        assert_eq!((code, scope), ("f()", inner.as_ref()));
        assert_eq!(parsed.get("a").and_then(ValueRef::as_array).expect("array").count(), 3);
        assert_eq!(parsed.get("min").expect("present").kind(), Type::MinKey);
        let mut copy = DocumentBuf::new();
        for element in parsed {
            copy.append(element.name, element.value);
        }
        assert_eq!(copy, document);
    }
}
