//! Conditions on paths with names of digits, such as `stats.2024` and `items.0.sku`.
//!
//! In an array, such a name is a position. An index has the key of the element there, and refuses a document in which an
//! element of the same array has a field with that name. A filter sees more than that key:
//!
//! - A missing value for each document in the array. So a condition that a missing value satisfies, such as null, may
//!   hold whatever the keys are.
//! - At the end of the path, an array at the position as a whole, and not its elements, which are the keys. The index is
//!   multikey then. So keys decide nothing, and a document may satisfy a negation though all of its keys are excluded.
//! - An `$elemMatch` takes an array inside an array for a document with names of digits, of which the index has no keys.
//! - An `$expr` knows no positions: for it, the path has an array as its value in each such document. So it is served if one of
//!   its comparisons with a constant holds for no array.
//!
//! All other conditions hold only for a value that has a key. If the array has no such position, both see the fields of
//! its elements.

use super::predicates::Keys;
use bunko_bson::{Type, Value, order};
use bunko_matcher::planted::{Fault, active};
use bunko_matcher::{Comparison, Condition, ExprComparison, Expression};

/// Whether the keys at a path with a name of digits serve all conditions of an expression on it.
pub(super) fn is_served(expression: &Expression, path: &str, keys: Keys) -> bool {
    match expression {
        Expression::Not(_) | Expression::Nor(_) if keys == Keys::Several => false,
        Expression::Expr(expr) => {
            let mut own = expr.implied().iter().filter(|implied| implied.path == path).peekable();
            own.peek().is_none() || own.any(excludes_arrays)
        }
        Expression::OnPath(own, condition) if own.is(path) => match condition {
            Condition::Compare(_, value) => needs_a_value(value),
            // The values are in order, and the others lie between these types.
            Condition::In { values, .. } => [values.first(), values.last()].into_iter().flatten().all(needs_a_value),
            Condition::Regex(_) | Condition::Mod { .. } | Condition::Type(_) | Condition::Exists => true,
            _ => false,
        },
        Expression::OnPath(own, Condition::ElemMatchObject(_)) => own.below(path).is_none(),
        other => other.parts().iter().all(|part| is_served(part, path, keys)),
    }
}

/// Whether a comparison of `$expr` holds for no array. Arrays are greater than numbers, strings and documents.
fn excludes_arrays(implied: &ExprComparison) -> bool {
    match implied.op {
        Comparison::Eq => !matches!(implied.value, Value::Array(_)),
        Comparison::Lt | Comparison::Lte => order::rank(implied.value.as_ref().kind()) < order::rank(Type::Array),
        Comparison::Gt | Comparison::Gte => active(Fault::ArraysBelowNumbers),
    }
}

/// Whether a missing value does not satisfy a comparison with this one.
fn needs_a_value(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Undefined | Value::MinKey | Value::MaxKey)
}
