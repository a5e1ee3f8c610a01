//! Elements together with the bytes that they are.

use bunko_bson::{DocumentRef, Element, Elements, ValueRef};

/// An element and where it stands in its document.
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
    /// Offset of what follows the element, in bytes.
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// Type and name with its closing zero, without the body.
    pub fn header(&self) -> &'d [u8] {
        &self.bytes[..self.name.len() + 2]
    }
}

/// Walks a document one element ahead, because an element ends where the next one starts.
pub(crate) struct EncodedElements<'d> {
    document: &'d [u8],
    elements: Elements<'d>,
    ahead: Option<Element<'d>>,
}

impl<'d> EncodedElements<'d> {
    pub fn new(document: DocumentRef<'d>) -> Self {
        let mut elements = document.iter();
        let ahead = elements.next();
        Self { document: document.as_bytes(), elements, ahead }
    }

    /// A name is borrowed from the document's own bytes, behind its type byte: its address tells the offset.
    fn start_of(&self, element: &Element<'_>) -> usize {
        element.name.as_ptr().addr() - self.document.as_ptr().addr() - 1
    }
}

impl<'d> Iterator for EncodedElements<'d> {
    type Item = Encoded<'d>;

    fn next(&mut self) -> Option<Encoded<'d>> {
        let element = self.ahead.take()?;
        self.ahead = self.elements.next();
        let start = self.start_of(&element);
        let end = self.ahead.as_ref().map_or(self.document.len() - 1, |next| self.start_of(next));
        Some(Encoded { name: element.name, value: element.value, bytes: &self.document[start..end], start })
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
