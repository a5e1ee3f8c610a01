//! Conditions that one key decides, although a document with an array has several keys.

use bunko_bson::{Type, Value, order};
use bunko_matcher::{Condition, Expression};

/// Whether a document with an array at the path satisfies a condition only if some element does by itself, and this
/// element has a key of its own. Null and arrays have no keys of their own.
pub(super) fn is_told_by_element(condition: &Expression, path: &str) -> bool {
    match condition {
        Expression::Or(children) => children.iter().all(|child| is_told_by_element(child, path)),
        Expression::OnPath(own, condition) if own.is(path) => match condition {
            Condition::Compare(_, value) => !matches!(value, Value::Null | Value::Undefined | Value::Array(_)),
            Condition::In { values, .. } => have_own_keys(values),
            Condition::Regex(_) | Condition::Mod { .. } => true,
            _ => false,
        },
        _ => false,
    }
}

/// Whether a document equals each of these values exactly if it has the value's key: null and arrays share their keys with
/// other values. The values are in order, so a long list is not read.
pub(super) fn have_own_keys(values: &[Value]) -> bool {
    let rank = |value: &Value| order::rank(value.as_ref().kind());
    let lacks = |kind| {
        let first = values.partition_point(|value| rank(value) < order::rank(kind));
        values.get(first).is_none_or(|value| rank(value) > order::rank(kind))
    };
    lacks(Type::Null) && lacks(Type::Array)
}
