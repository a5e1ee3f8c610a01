//! Classes of the conditions on one path, by the values that can satisfy them.

use bunko_bson::{DocumentRef, ValueRef};

/// Operators that compare a value with their operand.
const COMPARISONS: [&str; 5] = ["$eq", "$gt", "$gte", "$lt", "$lte"];

/// The operators of a condition on one path; `None` if the condition is a value to be equal to.
fn operators(condition: ValueRef<'_>) -> Option<DocumentRef<'_>> {
    condition.as_document().filter(|document| document.first().is_some_and(|first| first.name.starts_with('$')))
}

/// Whether a comparison with `value` (equal, less or greater) is false for a missing field.
fn is_found(value: ValueRef<'_>) -> bool {
    !value.is_nullish() && !matches!(value, ValueRef::MinKey | ValueRef::MaxKey)
}

/// Whether `value` is neither array nor document, and a comparison with it is false for a missing field.
fn is_scalar(value: ValueRef<'_>) -> bool {
    is_found(value) && !matches!(value, ValueRef::Array(_) | ValueRef::Document(_))
}

/// Whether the operator is a comparison whose operand `is_right`, or an `$in` with only such operands.
fn compares(name: &str, operand: ValueRef<'_>, is_right: fn(ValueRef<'_>) -> bool) -> bool {
    match operand {
        operand if COMPARISONS.contains(&name) => is_right(operand),
        ValueRef::Array(list) if name == "$in" => list.iter().all(is_right),
        _ => false,
    }
}

/// Whether only values that exist satisfy the condition, each on its own.
pub(super) fn needs_a_value(condition: ValueRef<'_>) -> bool {
    let Some(operators) = operators(condition) else { return is_found(condition) };
    operators.iter().all(|operator| match operator.name {
        "$regex" | "$options" | "$mod" => true,
        name => compares(name, operator.value, is_found),
    })
}

/// Whether only values without elements or fields satisfy the condition, each on its own. The value may also be an
/// element of an array.
pub(super) fn needs_a_scalar(condition: ValueRef<'_>) -> bool {
    let Some(operators) = operators(condition) else { return is_scalar(condition) };
    operators.iter().all(|operator| match operator.name {
        "$regex" | "$options" | "$mod" => true,
        name => compares(name, operator.value, is_scalar),
    })
}

/// Whether the condition tells apart neither values that are equal under the collation, nor null from missing.
pub(super) fn compares_values(condition: ValueRef<'_>) -> bool {
    let Some(operators) = operators(condition) else { return is_comparable(condition) };
    operators.iter().all(|operator| match (operator.name, operator.value) {
        ("$ne", operand) => is_comparable(operand),
        ("$nin", ValueRef::Array(list)) => list.iter().all(is_comparable),
        ("$not", ValueRef::Document(inner)) => compares_values(ValueRef::Document(inner)),
        (name, operand) => compares(name, operand, is_comparable),
    })
}

/// Whether an operand is compared by value alone. Not a pattern, which looks at a string's bytes. Not MinKey and
/// MaxKey, which compare with values of all types, and which a group may change.
fn is_comparable(value: ValueRef<'_>) -> bool {
    value.is_number()
        || matches!(
            value,
            ValueRef::Null | ValueRef::String(_) | ValueRef::Boolean(_) | ValueRef::ObjectId(_) | ValueRef::DateTime(_)
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn classes(condition: &str) -> [bool; 3] {
        let condition = shell::parse_value(condition).unwrap_or_else(|failure| panic!("{condition}: {failure}"));
        let condition = condition.as_ref();
        [needs_a_value(condition), needs_a_scalar(condition), compares_values(condition)]
    }

    #[test]
    fn conditions_are_classed_by_their_operands() {
        for (condition, expected) in [
            ("7", [true, true, true]),
            ("{$gte: 7, $lt: 9}", [true, true, true]),
            ("{$in: ['a', 2]}", [true, true, true]),
            ("{$in: ['a', null]}", [false, false, true]),
            ("null", [false, false, true]),
            ("{$ne: 7}", [false, false, true]),
            ("{$not: {$gt: 7}}", [false, false, true]),
            ("[1]", [true, false, false]),
            ("{a: 1}", [true, false, false]),
            ("{$exists: true}", [false, false, false]),
            ("{$type: 'int'}", [false, false, false]),
            ("{$lte: MaxKey}", [false, false, false]),
            ("{$regex: 'a'}", [true, true, false]),
            ("{$elemMatch: {$gt: 1}}", [false, false, false]),
        ] {
            assert_eq!(classes(condition), expected, "{condition}");
        }
    }
}
