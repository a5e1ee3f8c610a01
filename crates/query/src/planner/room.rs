//! Memory of a plan, requested before the plan is made: bounds may be many times larger than their filter.

use bunko_bson::{StringOrder, Value};
use bunko_matcher::{Condition, Expression};

/// Bytes for a filter node without bounds of its own.
const NODE_BYTES: usize = 128;
/// Bytes for a comparison that may become its own index scan in an `$or`: bounds, ranges and stages.
const BRANCH_BYTES: usize = 1024;
/// Bytes for a value of a list, as a key.
const POINT_BYTES: usize = 32;
/// Bytes for a value of a list under a collation: the value in the index's form, and its key.
const COLLATED_POINT_BYTES: usize = 256;

/// Bytes that making a plan for the filter takes.
pub(super) fn of_plan(filter: &Expression, strings: &StringOrder) -> usize {
    let of_comparison = |value: &Value| BRANCH_BYTES + 2 * of_key(value);
    NODE_BYTES
        + match filter {
            // The complement of a list has one interval more than the list has values.
            Expression::Not(child) => match &**child {
                Expression::OnPath(_, Condition::In { values, .. }) => values.iter().map(of_comparison).sum(),
                child => of_plan(child, strings),
            },
            Expression::OnPath(_, Condition::In { values, regexes }) => {
                let point_bytes = if strings.is_bytes() { POINT_BYTES } else { COLLATED_POINT_BYTES };
                values.iter().map(|value| point_bytes + of_key(value)).sum::<usize>() + regexes.len() * BRANCH_BYTES
            }
            Expression::OnPath(_, Condition::Compare(_, value)) => of_comparison(value),
            Expression::OnPath(_, Condition::Regex(_)) => BRANCH_BYTES,
            other => other.parts().iter().map(|part| of_plan(part, strings)).sum(),
        }
}

fn of_key(value: &Value) -> usize {
    2 * value.as_ref().content_bytes()
}
