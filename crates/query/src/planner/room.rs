//! The memory of a plan, asked for before the plan is made: bounds may take many times the bytes of their filter.

use bunko_bson::{StringOrder, Value};
use bunko_matcher::Expression;

/// A node of the filter that stands for nothing by itself, in bytes.
const NODE_BYTES: usize = 128;
/// A comparison that may become an index scan of its own, a branch of an `$or`, in bytes: bounds, ranges and stages.
const BRANCH_BYTES: usize = 1024;
/// A value of a list, as a key, in bytes.
const POINT_BYTES: usize = 32;
/// A value of a list where strings have a collation: as the index holds it, and as a key.
const COLLATED_POINT_BYTES: usize = 256;

/// Bytes that a plan for the filter takes while it is made.
pub(super) fn of_plan(filter: &Expression, strings: &StringOrder) -> usize {
    let all = |children: &[Expression]| children.iter().map(|child| of_plan(child, strings)).sum::<usize>();
    NODE_BYTES
        + match filter {
            Expression::And(children) | Expression::Or(children) | Expression::Nor(children) => all(children),
            Expression::Not(child)
            | Expression::ElemMatchObject { filter: child, .. }
            | Expression::ElemMatchValue { condition: child, .. } => of_plan(child, strings),
            Expression::In { values, regexes, .. } => {
                let point_bytes = if strings.is_bytes() { POINT_BYTES } else { COLLATED_POINT_BYTES };
                values.iter().map(|value| point_bytes + of_key(value)).sum::<usize>() + regexes.len() * BRANCH_BYTES
            }
            Expression::Compare { value, .. } => BRANCH_BYTES + 2 * of_key(value),
            Expression::Regex { .. } => BRANCH_BYTES,
            _ => 0,
        }
}

fn of_key(value: &Value) -> usize {
    2 * value.as_ref().content_bytes()
}
