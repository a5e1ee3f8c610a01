//! Writes documents straight into a reply's buffer.

use crate::{DocumentRef, EncodedElement, ValueRef};
use smallvec::{SmallVec, smallvec};

/// Usual number of scopes that are open at once in a reply. More of them take an allocation.
const SCOPES_USUAL: usize = 4;

/// Appends one document, with nested documents and arrays, to a buffer that may already hold other bytes.
///
/// [`DocumentBuf`](crate::DocumentBuf) is easier for small replies. This writer never copies a nested document.
/// [`Writer::begin_document`] or [`Writer::begin_array`] opens a scope, and [`Writer::end`] closes it.
pub struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
    starts: SmallVec<[usize; SCOPES_USUAL]>,
}

impl<'b> Writer<'b> {
    /// Opens the outermost document at the buffer's end.
    pub fn new(buffer: &'b mut Vec<u8>) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&[0; 4]);
        Self { buffer, starts: smallvec![start] }
    }

    /// Removes everything that was written, and opens the outermost document again.
    pub fn restart(&mut self) {
        self.buffer.truncate(self.starts[0] + 4);
        self.starts.truncate(1);
    }

    /// Appends a field to the innermost scope.
    pub fn append<'v>(&mut self, name: &str, value: impl Into<ValueRef<'v>>) -> &mut Self {
        put_element(self.buffer, name, value.into());
        self
    }

    /// Appends a field of another document unchanged.
    pub fn append_encoded(&mut self, element: &EncodedElement<'_>) -> &mut Self {
        self.buffer.extend_from_slice(element.as_bytes());
        self
    }

    /// Appends all fields of a document to the innermost scope.
    pub fn extend(&mut self, document: DocumentRef<'_>) -> &mut Self {
        let encoded = document.as_bytes();
        self.buffer.extend_from_slice(&encoded[4..encoded.len() - 1]);
        self
    }

    /// Appends a value under an array index to the innermost scope.
    pub fn push<'v>(&mut self, index: usize, value: impl Into<ValueRef<'v>>) -> &mut Self {
        put_index_name(self.buffer, index, value.into());
        self
    }

    /// Opens a document under `name`.
    pub fn begin_document(&mut self, name: &str) -> &mut Self {
        self.begin(0x03, name)
    }

    /// Opens an array under `name`.
    pub fn begin_array(&mut self, name: &str) -> &mut Self {
        self.begin(0x04, name)
    }

    /// Opens a document under an array index.
    pub fn begin_document_at(&mut self, index: usize) -> &mut Self {
        self.buffer.push(0x03);
        put_index(self.buffer, index);
        self.open()
    }

    fn begin(&mut self, kind: u8, name: &str) -> &mut Self {
        self.buffer.push(kind);
        put_name(self.buffer, name);
        self.open()
    }

    fn open(&mut self) -> &mut Self {
        self.starts.push(self.buffer.len());
        self.buffer.extend_from_slice(&[0; 4]);
        self
    }

    /// Makes room for this many more bytes at once.
    pub fn reserve(&mut self, bytes: usize) {
        self.buffer.reserve(bytes);
    }

    /// Number of bytes written so far, unclosed scopes included.
    pub fn len_bytes(&self) -> usize {
        self.buffer.len() - self.starts.first().copied().unwrap_or(self.buffer.len())
    }

    /// Capacity of the buffer in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Number of open scopes, which is the depth of the next value.
    pub fn depth(&self) -> usize {
        self.starts.len()
    }

    /// Closes the innermost scope. The last call closes the document itself.
    ///
    /// # Panics
    /// If it is called more often than scopes were opened.
    pub fn end(&mut self) -> &mut Self {
        let start = self.starts.pop().expect("a scope is open");
        self.buffer.push(0);
        let length = ((self.buffer.len() - start) as u32).to_le_bytes();
        self.buffer[start..start + 4].copy_from_slice(&length);
        self
    }
}

fn put_name(buffer: &mut Vec<u8>, name: &str) {
    assert!(!name.as_bytes().contains(&0), "a field name holds a zero byte");
    buffer.extend_from_slice(name.as_bytes());
    buffer.push(0);
}

pub(crate) fn put_element(buffer: &mut Vec<u8>, name: &str, value: ValueRef<'_>) {
    buffer.push(value.kind() as u8);
    put_name(buffer, name);
    put_body(buffer, value);
}

pub(crate) fn put_index_name(buffer: &mut Vec<u8>, index: usize, value: ValueRef<'_>) {
    buffer.push(value.kind() as u8);
    put_index(buffer, index);
    put_body(buffer, value);
}

fn put_index(buffer: &mut Vec<u8>, index: usize) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = index;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    buffer.extend_from_slice(&digits[start..]);
    buffer.push(0);
}

fn put_string(buffer: &mut Vec<u8>, text: &str) {
    buffer.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    buffer.extend_from_slice(text.as_bytes());
    buffer.push(0);
}

fn put_body(buffer: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Double(number) => buffer.extend_from_slice(&number.to_le_bytes()),
        ValueRef::String(text) | ValueRef::JavaScript(text) | ValueRef::Symbol(text) => put_string(buffer, text),
        ValueRef::Document(document) => buffer.extend_from_slice(document.as_bytes()),
        ValueRef::Array(array) => buffer.extend_from_slice(array.as_document().as_bytes()),
        ValueRef::Binary { subtype, bytes } => {
            buffer.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            buffer.push(subtype);
            buffer.extend_from_slice(bytes);
        }
        ValueRef::Undefined | ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey => {}
        ValueRef::ObjectId(id) => buffer.extend_from_slice(&id.0),
        ValueRef::Boolean(boolean) => buffer.push(u8::from(boolean)),
        ValueRef::DateTime(number) | ValueRef::Int64(number) => buffer.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Regex { pattern, options } => {
            put_name(buffer, pattern);
            put_name(buffer, options);
        }
        ValueRef::DbPointer { namespace, id } => {
            put_string(buffer, namespace);
            buffer.extend_from_slice(&id.0);
        }
        ValueRef::JavaScriptWithScope { code, scope } => {
            let length = 4 + 4 + code.len() + 1 + scope.len_bytes();
            buffer.extend_from_slice(&(length as u32).to_le_bytes());
            put_string(buffer, code);
            buffer.extend_from_slice(scope.as_bytes());
        }
        ValueRef::Int32(number) => buffer.extend_from_slice(&number.to_le_bytes()),
        ValueRef::Timestamp(timestamp) => {
            buffer.extend_from_slice(&timestamp.increment.to_le_bytes());
            buffer.extend_from_slice(&timestamp.seconds.to_le_bytes());
        }
        ValueRef::Decimal128(number) => buffer.extend_from_slice(&number.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocumentBuf;

    #[test]
    fn nested_scopes_close_with_their_lengths() {
        let mut buffer = vec![0xee];
        let mut writer = Writer::new(&mut buffer);
        writer.begin_document("cursor").begin_array("firstBatch");
        for index in 0..12 {
            writer.push(index, index as i32);
        }
        writer.begin_document_at(12).append("n", 1).end();
        writer.end().append("id", 0_i64).end().append("ok", 1.0).end();
        let document = DocumentRef::parse(&buffer[1..]).expect("well formed");
        let cursor = document.get("cursor").and_then(ValueRef::as_document).expect("cursor");
        let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("array");
        assert_eq!(batch.as_document().iter().last().map(|element| element.name), Some("12"));
        assert_eq!(document.get("ok").map(ValueRef::to_value).map(|v| format!("{v:?}")), Some("Double(1.0)".into()));
        let mut copy = DocumentBuf::new();
        copy.extend(document);
        assert_eq!(copy.as_ref(), document);
    }
}
