//! `min` and `max` of a find: one index from a key up to another, whatever the types of the values.

use crate::find_query::KeyBounds;
use bunko_bson::key_string::MAX_BYTE;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_catalog::{Index, KEY_PREFIX_BYTES};
use bunko_errors::{ErrorCode, Failure, Result};

/// The keys of an index from `min`, included, to `max`, excluded.
#[derive(Clone)]
pub(crate) struct KeyWindow {
    /// `min` as the client sent it; empty if absent.
    pub min: DocumentBuf,
    /// `max` as the client sent it; empty if absent.
    pub max: DocumentBuf,
    start: Vec<u8>,
    end: Vec<u8>,
}

impl KeyWindow {
    /// The window of `min` and `max` in an index.
    /// # Errors
    /// 51174 if their fields are not those of the index in its order, or the string order is not the index's; 51175 if
    /// `min` is not before `max`; 6137400 and 6137401 instead for the index of a clustered collection;
    /// `CommandNotSupported` if keys cannot decide what the window contains.
    /// Source: MongoDB manual, "cursor.min()" and "cursor.max()".
    pub fn new(index: &Index, bounds: &KeyBounds, strings: &StringOrder) -> Result<Self> {
        let key = |bound: &DocumentBuf| key(index, bound.as_ref(), strings);
        let start = if bounds.min.as_ref().is_empty() { Vec::new() } else { key(&bounds.min)? };
        let end = if bounds.max.as_ref().is_empty() { vec![MAX_BYTE] } else { key(&bounds.max)? };
        let is_long = start.len() > KEY_PREFIX_BYTES || end.len() > KEY_PREFIX_BYTES;
        if is_long && index.multikey().types().has_long_keys() {
            return Err(Failure::new(
                ErrorCode::COMMAND_NOT_SUPPORTED,
                format!(
                    "min() and max() of more than {KEY_PREFIX_BYTES} bytes are not supported yet in an index with long keys"
                ),
            ));
        }
        if start >= end && index.is_clustered {
            return Err(Failure::new(ErrorCode(6_137_401), "max() must be greater than min()"));
        }
        if start >= end {
            return Err(Failure::new(
                ErrorCode(51175),
                "The value provided for min() does not come before the value provided for max() in the hinted index",
            ));
        }
        Ok(Self { min: bounds.min.clone(), max: bounds.max.clone(), start, end })
    }

    /// The key range of the window.
    pub fn range(&self) -> (Vec<u8>, Vec<u8>) {
        (self.start.clone(), self.end.clone())
    }
}

/// Refusal of `min` or `max` without a hint.
pub(super) const NO_HINT: &str = "When using min()/max() a hint of which index to use must be provided";

/// Refusal of `min` or `max` with the hint `$natural`.
pub(super) const NATURAL_HINT: &str = "min and max are incompatible with $natural";

/// The failure of bounds that are not keys of the index.
pub(super) fn incompatible(index: &Index) -> Failure {
    if index.is_clustered {
        let message = "The clustered index is not compatible with the values provided for min/max due to the query \
                       collation";
        return Failure::new(ErrorCode(6_137_400), message);
    }
    Failure::new(ErrorCode(51174), "The index chosen is not compatible with min/max")
}

fn key(index: &Index, bound: DocumentRef<'_>, strings: &StringOrder) -> Result<Vec<u8>> {
    let has_fields_of_index =
        bound.iter().map(|element| element.name).eq(index.fields.iter().map(|field| field.path.as_str()));
    let is_ordered_alike = index.strings == *strings || !StringOrder::holds_strings(ValueRef::Document(bound));
    if !has_fields_of_index || !is_ordered_alike {
        return Err(incompatible(index));
    }
    let mut key = Vec::new();
    for (element, field) in bound.iter().zip(index.fields.iter()) {
        index.strings.append_key(&mut key, element.value, field.direction);
    }
    Ok(key)
}
