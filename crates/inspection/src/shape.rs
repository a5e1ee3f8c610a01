//! The shape of a command: equal for commands that differ in values only, so that each shape is rehearsed once.

use bunko_bson::{DocumentRef, ValueRef};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Elements of an array that count for its shape: `$in` with a thousand values is like one with ten, and a pipeline has
/// fewer stages.
const ELEMENTS_MAX: usize = 100;

/// Hashes the shape of a command.
pub(crate) fn shape(database: &str, command: DocumentRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    database.hash(&mut hasher);
    if let Some(first) = command.first() {
        first.value.as_str().hash(&mut hasher);
    }
    hash_document(command, &mut hasher);
    hasher.finish()
}

fn hash_document(document: DocumentRef<'_>, hasher: &mut DefaultHasher) {
    for element in document {
        element.name.hash(hasher);
        hash_value(element.value, hasher);
    }
    // Marks the end of the document.
    "".hash(hasher);
}

fn hash_value(value: ValueRef<'_>, hasher: &mut DefaultHasher) {
    value.kind().alias().hash(hasher);
    match value {
        ValueRef::Document(document) => hash_document(document, hasher),
        ValueRef::Array(array) => {
            let mut last = 0;
            for value in array.iter().take(ELEMENTS_MAX) {
                // Equal neighbours count once.
                let mut own = DefaultHasher::new();
                hash_value(value, &mut own);
                let this = own.finish();
                if this != last {
                    this.hash(hasher);
                    last = this;
                }
            }
        }
        // Variables and paths.
        ValueRef::String(text) if text.starts_with('$') => text.hash(hasher),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    fn of(json: &str) -> u64 {
        shape("d", parse_document(json).expect("JSON").as_ref())
    }

    #[test]
    fn values_do_not_count_and_names_do() {
        let one = of(r#"{"find": "c", "filter": {"a": {"$in": [1, 2, 3]}, "b": "x"}}"#);
        assert_eq!(one, of(r#"{"find": "c", "filter": {"a": {"$in": [4]}, "b": "y"}}"#));
        for other in [
            r#"{"find": "d", "filter": {"a": {"$in": [4]}, "b": "y"}}"#,
            r#"{"find": "c", "filter": {"a": {"$nin": [4]}, "b": "y"}}"#,
            r#"{"find": "c", "filter": {"a": {"$in": ["4"]}, "b": "y"}}"#,
            r#"{"find": "c", "filter": {"a": {"$in": [4]}, "b": "$y"}}"#,
            r#"{"find": "c", "filter": {"a": {"$in": [4], "b": "y"}}}"#,
        ] {
            assert_ne!(one, of(other), "{other}");
        }
    }
}
