//! The wording of failure details for each operator.

use crate::path::Leaves;
use bunko_bson::Type;

/// The wording for an operator's failures.
pub(super) struct Wording {
    /// For an operator that should match and does not.
    pub no_match: &'static str,
    /// For an operator that matches and should not.
    pub matched: &'static str,
    /// The values at its path that the operator tests; `None` if details show none.
    pub leaves: Option<Leaves>,
    /// The types that the operator can match; empty for all.
    pub types: &'static [Type],
}

const ARRAY: &[Type] = &[Type::Array];
const NUMBERS: &[Type] = &[Type::Decimal128, Type::Double, Type::Int32, Type::Int64];
const NUMBERS_AND_BYTES: &[Type] = &[Type::Binary, Type::Decimal128, Type::Double, Type::Int32, Type::Int64];
const TEXTS: &[Type] = &[Type::Regex, Type::String, Type::Symbol];
const GEOMETRIES: &[Type] = &[Type::Array, Type::Document];

/// The wording for an operator; types are sorted by name.
pub(super) fn of(operator: &str) -> Wording {
    let each = Some(Leaves::ElementsAndWhole);
    let whole = Some(Leaves::Whole);
    let (no_match, matched, leaves, types): (_, _, _, &[Type]) = match operator {
        "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" => ("comparison failed", "comparison succeeded", each, &[]),
        "$in" | "$nin" => ("no matching value found in array", "matching value found in array", each, &[]),
        "$regex" => ("regular expression did not match", "regular expression did match", each, TEXTS),
        "$exists" => ("path does not exist", "path does exist", None, &[]),
        "$type" => ("type did not match", "type did match", each, &[]),
        "$mod" => {
            ("$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder", each, NUMBERS)
        }
        "$size" => ("array length was not equal to given size", "array length was equal to given size", whole, ARRAY),
        "$all" => ("array did not contain all specified values", "array did contain all specified values", whole, &[]),
        "$elemMatch" => {
            ("array did not satisfy the child predicate", "array did satisfy the child predicate", whole, ARRAY)
        }
        "$bitsAllClear" | "$bitsAllSet" | "$bitsAnyClear" | "$bitsAnySet" => {
            ("bitwise operator failed to match", "bitwise operator matched successfully", each, NUMBERS_AND_BYTES)
        }
        "$geoIntersects" => (
            "none of considered geometries intersected the expression’s geometry",
            "at least one of considered geometries intersected the expression’s geometry",
            whole,
            GEOMETRIES,
        ),
        "$geoWithin" | "$within" => (
            "none of the considered geometries were contained within the expression’s geometry",
            "at least one of considered geometries was contained within the expression’s geometry",
            whole,
            GEOMETRIES,
        ),
        "$alwaysTrue" | "$alwaysFalse" => {
            ("expression always evaluates to false", "expression always evaluates to true", None, &[])
        }
        _ => ("expression did not match", "expression did match", None, &[]),
    };
    Wording { no_match, matched, leaves, types }
}
