//! The depth of nested documents and arrays.

use crate::{DocumentRef, Type, ValueRef};

/// Minimum number of bytes of one more level: a type, an empty name's zero, a length, a closing zero.
const LEVEL_BYTES_MIN: usize = 7;

/// Whether documents and arrays are nested more than `levels` deep. A value of another type has no level.
///
/// A document too small for that many levels is not walked, so that most values cost one comparison.
pub fn exceeds(value: ValueRef<'_>, levels: usize) -> bool {
    match value {
        ValueRef::Document(document) | ValueRef::JavaScriptWithScope { scope: document, .. } => {
            document_exceeds(document, levels)
        }
        ValueRef::Array(array) => document_exceeds(array.as_document(), levels),
        _ => false,
    }
}

/// Recurses at most `levels` deep.
fn document_exceeds(document: DocumentRef<'_>, levels: usize) -> bool {
    if levels == 0 {
        return true;
    }
    if document.len_bytes() < DocumentRef::EMPTY.len_bytes() + LEVEL_BYTES_MIN * levels {
        return false;
    }
    let mut elements = document.iter();
    while let Some((kind, _, body)) = elements.next_encoded() {
        let inner = match kind {
            Type::Document | Type::Array => Some(DocumentRef::trusted(body)),
            Type::JavaScriptWithScope => crate::reader::scope(body),
            _ => None,
        };
        if inner.is_some_and(|inner| document_exceeds(inner, levels - 1)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayBuf, DocumentBuf};

    /// Nested documents with empty names, the smallest possible.
    fn nested(levels: usize) -> DocumentBuf {
        (1..levels).fold(DocumentBuf::new(), |inner, _| DocumentBuf::new().with("", &inner))
    }

    #[test]
    fn levels_are_counted_exactly() {
        for levels in 1..250 {
            let document = nested(levels);
            assert!(!exceeds(ValueRef::from(&document), levels), "{levels}");
            assert!(exceeds(ValueRef::from(&document), levels - 1), "{levels}");
        }
        assert!(!exceeds(ValueRef::Int32(1), 0));
    }

    #[test]
    fn arrays_and_scopes_are_levels_too() {
        let inner = nested(3);
        let array: ArrayBuf = [ValueRef::Int32(1), ValueRef::from(&inner)].into_iter().collect();
        assert!(exceeds(ValueRef::from(&array), 3) && !exceeds(ValueRef::from(&array), 4));
        let code = DocumentBuf::new().with("c", ValueRef::JavaScriptWithScope { code: "f", scope: inner.as_ref() });
        assert!(exceeds(ValueRef::from(&code), 3) && !exceeds(ValueRef::from(&code), 4));
    }
}
