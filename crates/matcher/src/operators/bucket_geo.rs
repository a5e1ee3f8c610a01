//! `$_internalBucketGeoWithin`: time series buckets with a measurement located within a region. `$geoWithin` over
//! measurements implies it for their buckets.

use super::TopLevelOperator;
use super::geo::{self, Geo};
use crate::evaluate::Evaluation;
use crate::expression::Expression;
use crate::path::Path;
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_geometry::values_at;

pub(crate) const BUCKET_GEO_WITHIN: TopLevelOperator =
    TopLevelOperator { name: "$_internalBucketGeoWithin", strings: StringUse::AsBytes, parse: |_, value| parse(value) };

/// The field of a bucket that has its columns.
const COLUMNS: &str = "data";

/// Errors: `TypeMismatch` and `BadValue` for an invalid region or field.
fn parse(value: ValueRef<'_>) -> Result<Expression> {
    let name = BUCKET_GEO_WITHIN.name;
    let Some(operand) = value.as_document() else {
        return Err(Failure::type_mismatch(format!("{name} must be an object")));
    };
    let (mut region, mut field) = (None, None);
    for element in operand {
        match (element.name, element.value) {
            ("withinRegion", ValueRef::Document(document)) => region = Some(document),
            ("field", ValueRef::String(path)) => field = Some(path),
            (other, _) => return Err(Failure::bad_value(format!("{name} has no such field: '{other}'"))),
        }
    }
    let (Some(region), Some(field)) = (region, field) else {
        return Err(Failure::bad_value(format!("{name} needs 'withinRegion' and 'field'")));
    };
    Ok(Expression::BucketGeo { field: Path::parse(field)?, geo: Geo::within(region)? })
}

pub(crate) fn to_document(field: &Path, geo: &Geo) -> DocumentBuf {
    let operand = DocumentBuf::new().with("withinRegion", geo.source()).with("field", field.as_str());
    DocumentBuf::new().with(BUCKET_GEO_WITHIN.name, &operand)
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
    geo::matches(geo, Some(value), evaluation)
        || value.as_array().is_some_and(|array| array.iter().any(|inner| geo::matches(geo, Some(inner), evaluation)))
}
