//! `$_internalBucketGeoWithin`: time series buckets with a measurement located within a region. `$geoWithin` over
//! measurements implies it for their buckets.

use super::TopLevelOperator;
use crate::expression::Expression;
use crate::operands::Geo;
use crate::path::Path;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const BUCKET_GEO_WITHIN: TopLevelOperator =
    TopLevelOperator { name: "$_internalBucketGeoWithin", strings: StringUse::AsBytes, parse: |_, value| parse(value) };

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
