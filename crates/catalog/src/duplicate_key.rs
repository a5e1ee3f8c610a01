//! The failure of a duplicate key: E11000.

use crate::index_keys::values_at;
use crate::long_key::KEY_BYTES_MAX;
use crate::{Collection, Index, shorten_key};
use bunko_bson::key_string::Direction;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef, key_string, number, order};
use bunko_errors::{ErrorCode, Failure};

/// The failure for `key`, a key in the index without a record id. `document` is the document that would have had the
/// key too, if the caller has it: a key does not distinguish `1` from `1.0`, but the document does.
pub(crate) fn duplicate_key(
    collection: &Collection,
    index: &Index,
    key: &[u8],
    document: Option<DocumentRef<'_>>,
) -> Failure {
    let key_value = key_value(index, key, document);
    let collation = index.strings.collator().map_or_else(String::new, |collator| {
        format!(" collation: {}", ValueText(ValueRef::Document(collator.specification())))
    });
    let message = format!(
        "E11000 duplicate key error collection: {} index: {}{collation} dup key: {}",
        collection.namespace(),
        index.name,
        ValueText(ValueRef::Document(key_value.as_ref()))
    );
    let details = DocumentBuf::new().with("keyPattern", index.key_pattern()).with("keyValue", &key_value);
    Failure::new(code(index, key_value.as_ref()), message).with_details(details.as_ref())
}

/// The code of the failure. NaN and infinities have codes of their own as the `_id` of a clustered collection.
fn code(index: &Index, key_value: DocumentRef<'_>) -> ErrorCode {
    let id = key_value.get("_id").filter(|_| index.is_clustered);
    match id.and_then(number::as_f64) {
        Some(id) if id.is_nan() => ErrorCode(50_819),
        Some(id) if id.is_infinite() => ErrorCode(50_826),
        _ => ErrorCode::DUPLICATE_KEY,
    }
}

/// The key by field, with values as in the document. A string under a collation is given as its sort key, in
/// hexadecimal.
fn key_value(index: &Index, key: &[u8], document: Option<DocumentRef<'_>>) -> DocumentBuf {
    if key.len() > KEY_BYTES_MAX
        && let Some(value) = document.and_then(|document| whole_key_value(index, key, document))
    {
        return value;
    }
    let directions: Vec<_> = index.fields.iter().map(|field| field.direction).collect();
    let values = key_string::decode(key, &directions).unwrap_or_default();
    let mut key_value = DocumentBuf::new();
    for (field, value) in index.fields.iter().zip(&values) {
        if let Value::String(text) = value
            && !index.strings.is_bytes()
        {
            key_value.append(&field.path, sort_key(text).as_str());
            continue;
        }
        let held = document.map(|document| values_at(document, &field.path)).unwrap_or_default();
        let own = held.into_iter().find(|held| order::equal(*held, value.as_ref()));
        key_value.append(&field.path, own.unwrap_or(value.as_ref()));
    }
    key_value
}

/// The document's values for a shortened key; `None` if the document lacks one. If paths meet arrays, it may be unknown
/// which values the key was made from; then the first values are given.
fn whole_key_value(index: &Index, key: &[u8], document: DocumentRef<'_>) -> Option<DocumentBuf> {
    let mut key_value = DocumentBuf::new();
    for field in index.fields.iter() {
        let held = values_at(document, &field.path);
        let is_own = |value: &&ValueRef<'_>| {
            let mut own = Vec::new();
            index.strings.append_key(&mut own, **value, field.direction);
            shorten_key(&mut own) && own == key
        };
        let value = held.iter().find(is_own).or(held.first()).copied()?;
        match value {
            ValueRef::String(_) if !index.strings.is_bytes() => {
                let mut own = Vec::new();
                index.strings.append_key(&mut own, value, Direction::Ascending);
                let told = key_string::decode(&own, &[Direction::Ascending])?.pop()?;
                let Value::String(text) = told else { return None };
                key_value.append(&field.path, sort_key(&text).as_str());
            }
            value => {
                key_value.append(&field.path, value);
            }
        }
    }
    Some(key_value)
}

/// The text for a string in a key, whose characters stand for the bytes of a sort key.
fn sort_key(text: &str) -> String {
    let bytes = text.chars().map(|character| format!("{:02x}", u32::from(character)));
    format!("CollationKey(0x{})", bytes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexSpec;
    use bunko_bson::{ArrayBuf, Decimal128};
    use bunko_store::KeyspaceId;

    /// The `keyValue` of the failure for a key in a unique index on `paths`, with `document` or without one.
    fn said(paths: &[&str], key: &[i32], document: Option<&DocumentBuf>) -> DocumentBuf {
        let pattern = paths.iter().fold(DocumentBuf::new(), |pattern, path| pattern.with(path, -1_i32));
        let spec = DocumentBuf::new().with("key", &pattern).with("name", "i").with("unique", true);
        let index = Index::new(IndexSpec::parse(spec.as_ref()).expect("a specification"), KeyspaceId(1));
        let mut bytes = Vec::new();
        for value in key {
            key_string::append(&mut bytes, ValueRef::Int32(*value), Direction::Descending);
        }
        key_value(&index, &bytes, document.map(DocumentBuf::as_ref))
    }

    #[test]
    fn values_have_the_types_that_the_document_gives_them() {
        for value in [
            ValueRef::Int32(1),
            ValueRef::Int64(1),
            ValueRef::Double(1.0),
            ValueRef::Decimal128(Decimal128::parse("1.0").expect("a number")),
        ] {
            let document = DocumentBuf::new().with("_id", value);
            assert_eq!(said(&["_id"], &[1], Some(&document)), document);
        }
        assert_eq!(said(&["_id"], &[1], None), DocumentBuf::new().with("_id", 1_i32));
    }

    #[test]
    fn the_failure_names_the_key_that_exists() {
        let elements: ArrayBuf = [1.0, 2.0, 3.0].into_iter().collect();
        let document = DocumentBuf::new().with("a", &elements).with("b", &DocumentBuf::new().with("c", 4.0));
        let told = said(&["a", "b.c"], &[2, 4], Some(&document));
        assert_eq!(told, DocumentBuf::new().with("a", 2.0).with("b.c", 4.0));
    }
}
