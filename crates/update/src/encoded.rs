//! Elements together with their bytes.

use bunko_bson::{DocumentRef, Element, Elements, ValueRef};

/// Size of the length field at the start of a document, in bytes.
pub(crate) const LENGTH_BYTES: usize = 4;

/// An element and its position in the document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'d> {
    pub name: &'d str,
    pub value: ValueRef<'d>,
    /// Type, name and body.
    pub bytes: &'d [u8],
    /// Offset of the element in its document, in bytes.
    pub start: usize,
}

impl<'d> Encoded<'d> {
    /// Offset of the element's end in its document, in bytes.
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// Type and name with the closing zero, without the body.
    pub fn header(&self) -> &'d [u8] {
        &self.bytes[..self.name.len() + 2]
    }
}

/// Iterates over a document's elements.
pub(crate) struct EncodedElements<'d> {
    elements: Elements<'d>,
    /// Offset of the next element.
    start: usize,
}

impl<'d> EncodedElements<'d> {
    pub fn new(document: DocumentRef<'d>) -> Self {
        Self { elements: document.iter(), start: LENGTH_BYTES }
    }
}

impl<'d> Iterator for EncodedElements<'d> {
    type Item = Encoded<'d>;

    fn next(&mut self) -> Option<Encoded<'d>> {
        let rest = self.elements.rest();
        let Element { name, value } = self.elements.next()?;
        let bytes = &rest[..rest.len() - self.elements.rest().len()];
        let start = self.start;
        self.start += bytes.len();
        Some(Encoded { name, value, bytes, start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn spans_cover_the_document_without_gaps() {
        let document = DocumentBuf::new().with("a", 1_i32).with("", "x").with("long name", DocumentRef::EMPTY);
        let mut end = 4;
        for element in EncodedElements::new(document.as_ref()) {
            assert_eq!(element.start, end);
            assert_eq!(element.bytes[0], element.value.kind() as u8);
            assert_eq!(element.header().last(), Some(&0));
            end = element.end();
        }
        assert_eq!(end, document.as_ref().len_bytes() - 1);
    }
}
