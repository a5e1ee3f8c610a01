//! Values of the trees, decoded.

use crate::key_value::KeyValue;
use bunko_store::{Result, StorageError};

/// The error for a malformed value in the trees.
pub(crate) fn malformed(what: &str) -> StorageError {
    StorageError::Corrupt { file: "trees".into(), offset_bytes: 0, found: format!("a malformed {what}") }
}

pub(crate) fn key_value(value: &[u8]) -> Result<KeyValue> {
    KeyValue::decode(value).ok_or_else(|| malformed("value of an index key"))
}
