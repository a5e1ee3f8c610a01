//! Values at dotted paths.

use bunko_bson::{DocumentRef, ValueRef};

/// The value at a path that leads through documents only.
pub(crate) fn through_documents<'d>(document: DocumentRef<'d>, path: &str) -> Option<ValueRef<'d>> {
    let mut value = ValueRef::Document(document);
    for component in path.split('.') {
        value = value.as_document()?.get(component)?;
    }
    Some(value)
}

/// Calls `found` for each value at a path. The path may lead through arrays of documents.
pub(crate) fn through_arrays<'d>(document: DocumentRef<'d>, path: &str, found: &mut dyn FnMut(ValueRef<'d>)) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(value) = document.get(first) else { return };
    match (rest, value) {
        (None, value) => found(value),
        (Some(rest), ValueRef::Document(inner)) => through_arrays(inner, rest, found),
        (Some(rest), ValueRef::Array(array)) => {
            for inner in array.iter().filter_map(ValueRef::as_document) {
                through_arrays(inner, rest, found);
            }
        }
        _ => {}
    }
}
