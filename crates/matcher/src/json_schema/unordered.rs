//! Equality of values regardless of the order of fields in documents, for `enum` and `uniqueItems`.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};

/// A copy in which the fields of all documents are sorted by name. Two values are equal regardless of field order if
/// their canonical forms are equal.
pub(super) fn canonical(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(document) => Value::Document(sorted(document)),
        ValueRef::Array(list) => {
            let mut array = ArrayBuf::new();
            for element in list.iter() {
                match element {
                    ValueRef::Document(_) | ValueRef::Array(_) => array.push(&canonical(element)),
                    element => array.push(element),
                };
            }
            Value::Array(array)
        }
        value => value.to_value(),
    }
}

fn sorted(document: DocumentRef<'_>) -> DocumentBuf {
    let mut elements: Vec<_> = document.iter().collect();
    elements.sort_by(|a, b| a.name.cmp(b.name));
    let mut sorted = DocumentBuf::new();
    for element in elements {
        sorted.append(element.name, &canonical(element.value));
    }
    sorted
}
