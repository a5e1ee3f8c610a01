//! The error that drivers look at most: E11000.

use crate::{Collection, Index};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, ValueRef, key_string};
use bunko_errors::{ErrorCode, Failure};

/// `key` is the key that is there already, without a record id.
pub(crate) fn duplicate_key(collection: &Collection, index: &Index, key: &[u8]) -> Failure {
    let directions: Vec<_> = index.fields.iter().map(|field| field.direction).collect();
    let values = key_string::decode(key, &directions).unwrap_or_default();
    let mut key_value = DocumentBuf::new();
    for (field, value) in index.fields.iter().zip(&values) {
        key_value.append(&field.path, value);
    }
    let message = format!(
        "E11000 duplicate key error collection: {} index: {} dup key: {}",
        collection.namespace(),
        index.name,
        ValueText(ValueRef::Document(key_value.as_ref()))
    );
    let details = DocumentBuf::new().with("keyPattern", index.key_pattern()).with("keyValue", &key_value);
    Failure::new(ErrorCode::DUPLICATE_KEY, message).with_details(details.as_ref())
}
