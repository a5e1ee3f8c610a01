//! `min` and `max` of a find: a stretch of one index, from a key up to another, whatever the types of their values.

use super::index_bounds::ScanRange;
use crate::find_query::KeyBounds;
use bunko_bson::key_string::{self, MAX_BYTE};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_catalog::Index;
use bunko_errors::{ErrorCode, Failure, Result};

/// The keys of one index that are at least one and below another.
#[derive(Clone)]
pub(crate) struct KeyWindow {
    /// As it was asked for; empty where nothing was.
    pub min: DocumentBuf,
    /// As it was asked for; empty where nothing was.
    pub max: DocumentBuf,
    start: Vec<u8>,
    end: Vec<u8>,
}

impl KeyWindow {
    /// The part of an index that `min` and `max` name.
    /// # Errors
    /// 51174 where their fields are not those of the index, in its order; 51175 where `min` does not come before `max`.
    /// Source: MongoDB manual, "cursor.min()" and "cursor.max()".
    pub fn new(index: &Index, bounds: &KeyBounds) -> Result<Self> {
        let start = if bounds.min.as_ref().is_empty() { Vec::new() } else { key(index, bounds.min.as_ref())? };
        let end = if bounds.max.as_ref().is_empty() { vec![MAX_BYTE] } else { key(index, bounds.max.as_ref())? };
        if start >= end {
            return Err(Failure::new(
                ErrorCode(51175),
                "The value provided for min() does not come before the value provided for max() in the hinted index",
            ));
        }
        Ok(Self { min: bounds.min.clone(), max: bounds.max.clone(), start, end })
    }

    /// The window as a scan reads it.
    pub fn range(&self) -> ScanRange {
        ScanRange::Between { start: self.start.clone(), end: self.end.clone() }
    }
}

/// The failure of `min` or `max` without an index.
pub(super) fn without_hint() -> Failure {
    Failure::new(ErrorCode(51173), "When using min()/max() a hint of which index to use must be provided")
}

fn key(index: &Index, bound: DocumentRef<'_>) -> Result<Vec<u8>> {
    let has_fields_of_index =
        bound.iter().map(|element| element.name).eq(index.fields.iter().map(|field| field.path.as_str()));
    if !has_fields_of_index {
        return Err(Failure::new(ErrorCode(51174), "The index chosen is not compatible with min/max"));
    }
    let mut key = Vec::new();
    for (element, field) in bound.iter().zip(&index.fields) {
        key_string::append(&mut key, element.value, field.direction);
    }
    Ok(key)
}
