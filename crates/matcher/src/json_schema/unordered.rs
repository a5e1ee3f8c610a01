//! Equality of values in which the order of a document's fields does not count, as `enum` and `uniqueItems` have it.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef};

/// The value with the fields of all documents in it in the order of their names. Two values are equal without regard to
/// the order of fields if the canonical ones compare equal.
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
