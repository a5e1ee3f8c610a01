//! The test whether a time series bucket has a measurement in a region.

use super::Geo;
use crate::evaluation::Evaluation;
use crate::path::Path;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_geometry::values_at;

/// The field of a bucket under which its columns are.
const COLUMNS: &str = "data";

pub(crate) fn to_document(field: &Path, geo: &Geo) -> DocumentBuf {
    let operand = DocumentBuf::new().with("withinRegion", &geo.source).with("field", field.as_str());
    DocumentBuf::new().with("$_internalBucketGeoWithin", &operand)
}

/// Whether some measurement of the bucket is located within the region. True for a bucket whose columns cannot be read,
/// since it may have one.
pub(crate) fn matches(bucket: DocumentRef<'_>, field: &Path, geo: &Geo, evaluation: &mut Evaluation<'_>) -> bool {
    let (column, rest) = field.as_str().split_once('.').unwrap_or((field.as_str(), ""));
    let Some(columns) = bucket.get(COLUMNS).and_then(ValueRef::as_document) else { return true };
    let values = match columns.get(column) {
        None => return false,
        Some(ValueRef::Document(values)) => values,
        // Compressed column.
        Some(_) => return true,
    };
    values.iter().any(|row| {
        if rest.is_empty() {
            return matches_one(geo, row.value, evaluation);
        }
        let path = format!("{}.{rest}", row.name);
        values_at(values, &path).into_iter().any(|value| matches_one(geo, value, evaluation))
    })
}

/// Whether a value is a location within the region, or an array with such a location.
fn matches_one(geo: &Geo, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
    geo.matches(Some(value), evaluation)
        || value.as_array().is_some_and(|array| array.iter().any(|inner| geo.matches(Some(inner), evaluation)))
}
