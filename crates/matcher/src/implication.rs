//! Whether documents that match one filter are known to match another: what a partial index is asked.
//!
//! **Invariant:** what is said to follow does follow; not all that follows is found.

use crate::{Comparison, Expression, Path};
use bunko_bson::{Value, ValueRef, order};

/// Pairs of nodes that are looked at before the answer is no: filters of many nested alternatives have very many.
const PAIRS_MAX: u32 = 10_000;

/// Whether each document that matches all of `premises` also matches `conclusion`.
///
/// A condition on a path holds where some value there satisfies it. So one follows from another on the same path where each
/// value that satisfies the one satisfies the other.
pub fn implies(premises: &[Expression], conclusion: &Expression) -> bool {
    Implication { pairs: 0 }.of_all(premises, conclusion)
}

struct Implication {
    pairs: u32,
}

impl Implication {
    fn of_all(&mut self, premises: &[Expression], conclusion: &Expression) -> bool {
        self.pairs += 1;
        if self.pairs > PAIRS_MAX {
            return false;
        }
        match conclusion {
            Expression::And(children) => children.iter().all(|child| self.of_all(premises, child)),
            Expression::Or(children) if children.iter().any(|child| self.of_all(premises, child)) => true,
            _ => premises.iter().any(|premise| self.of_one(premise, conclusion)),
        }
    }

    fn of_one(&mut self, premise: &Expression, conclusion: &Expression) -> bool {
        self.pairs += 1;
        if self.pairs > PAIRS_MAX {
            return false;
        }
        match (premise, conclusion) {
            (Expression::AlwaysFalse, _) | (_, Expression::AlwaysTrue) => true,
            (Expression::Or(children), _) => children.iter().all(|child| self.of_one(child, conclusion)),
            (Expression::And(children), _) => self.of_all(children, conclusion),
            (_, Expression::And(children)) => children.iter().all(|child| self.of_one(premise, child)),
            (_, Expression::Or(children)) => children.iter().any(|child| self.of_one(premise, child)),
            _ => follows(premise, conclusion),
        }
    }
}

/// The same for two conditions on paths.
fn follows(premise: &Expression, conclusion: &Expression) -> bool {
    match (premise, conclusion) {
        (_, Expression::Exists { path }) => implies_existence(premise, path),
        (
            Expression::Compare { path, op, value },
            Expression::Compare { path: other_path, op: other_op, value: other },
        ) => path == other_path && is_within((*op, value), (*other_op, other)),
        (Expression::Compare { path, op: Comparison::Eq, value }, Expression::In { path: other_path, values, .. }) => {
            path == other_path && holds(values, value)
        }
        (Expression::In { path, values, regexes }, _) if regexes.is_empty() && conclusion.path() == Some(path) => {
            values.iter().all(|value| match conclusion {
                Expression::In { values: others, .. } => holds(others, value),
                Expression::Compare { op, value: other, .. } => is_within((Comparison::Eq, value), (*op, other)),
                _ => false,
            })
        }
        (Expression::Type { path, types }, Expression::Type { path: other_path, types: others }) => {
            path == other_path && types.is_within(others)
        }
        _ => false,
    }
}

/// Whether what matches has a value at the path.
fn implies_existence(premise: &Expression, existing: &Path) -> bool {
    // A missing value counts as null, and stands within both ends of the order.
    let is_present = |value: &Value| !matches!(value, Value::Null | Value::MinKey | Value::MaxKey);
    match premise {
        Expression::Compare { path, value, .. } => path == existing && is_present(value),
        Expression::In { path, values, .. } => path == existing && values.iter().all(is_present),
        // An empty array on the way has no value, and no null either.
        Expression::Not(child) => match child.as_ref() {
            Expression::Compare { path, op: Comparison::Eq, value: Value::Null } => {
                path == existing && !path.as_str().contains('.')
            }
            _ => false,
        },
        Expression::Regex { path, .. }
        | Expression::Exists { path }
        | Expression::Type { path, .. }
        | Expression::Mod { path, .. }
        | Expression::Size { path, .. }
        | Expression::ElemMatchObject { path, .. }
        | Expression::ElemMatchValue { path, .. }
        | Expression::Bits { path, .. } => path == existing,
        _ => false,
    }
}

fn holds(values: &[Value], value: &Value) -> bool {
    values.iter().any(|other| order::equal(other.as_ref(), value.as_ref()))
}

/// Whether all values that satisfy the one comparison satisfy the other.
fn is_within((op, value): (Comparison, &Value), (other_op, other): (Comparison, &Value)) -> bool {
    let (value, other) = (value.as_ref(), other.as_ref());
    let ordering = order::compare(value, other);
    if op == other_op && ordering.is_eq() {
        return true;
    }
    // Comparisons stay within the type of their operand, but for those with the ends of the order.
    let is_comparable = |value: ValueRef<'_>| match value {
        ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey | ValueRef::Array(_) => false,
        ValueRef::Double(number) => !number.is_nan(),
        ValueRef::Decimal128(number) => !number.is_nan(),
        _ => true,
    };
    if order::rank(value.kind()) != order::rank(other.kind()) || !is_comparable(value) || !is_comparable(other) {
        return false;
    }
    match (op, other_op) {
        (Comparison::Eq, _) => other_op.holds(ordering),
        (Comparison::Lt, Comparison::Lt | Comparison::Lte) => ordering.is_le(),
        (Comparison::Lte, Comparison::Lte) => ordering.is_le(),
        (Comparison::Lte, Comparison::Lt) => ordering.is_lt(),
        (Comparison::Gt, Comparison::Gt | Comparison::Gte) => ordering.is_ge(),
        (Comparison::Gte, Comparison::Gte) => ordering.is_ge(),
        (Comparison::Gte, Comparison::Gt) => ordering.is_gt(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Filter;
    use bunko_testkit::shell;

    fn follows(premise: &str, conclusion: &str) -> bool {
        let parse = |filter: &str| {
            let filter = shell::parse_document(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
            Filter::parse(filter.as_ref()).expect("a filter")
        };
        implies(&[parse(premise).root().clone()], parse(conclusion).root())
    }

    #[test]
    fn narrower_ranges_follow_and_wider_ones_do_not() {
        assert!(follows("{a: {$gt: 8}}", "{a: {$gt: 5}}"));
        assert!(follows("{a: {$gt: 5}}", "{a: {$gte: 5}}"));
        assert!(!follows("{a: {$gte: 5}}", "{a: {$gt: 5}}"));
        assert!(!follows("{a: {$gt: 2}}", "{a: {$gt: 5}}"));
        assert!(!follows("{a: {$gt: 'x'}}", "{a: {$gt: 5}}"));
        assert!(!follows("{b: {$gt: 8}}", "{a: {$gt: 5}}"));
        assert!(follows("{a: 8.0, b: 1}", "{a: {$gt: 5, $lte: 8}}"));
        assert!(!follows("{a: NaN}", "{a: {$lt: 5}}"));
    }

    #[test]
    fn lists_types_and_existence() {
        assert!(follows("{a: {$in: [1, 2]}}", "{a: {$in: [1, 2, 3]}}"));
        assert!(!follows("{a: {$in: [1, 4]}}", "{a: {$in: [1, 2, 3]}}"));
        assert!(follows("{a: {$in: [7, 9]}}", "{a: {$gt: 5}}"));
        assert!(!follows("{a: {$in: [7, /x/]}}", "{a: {$gt: 5}}"));
        assert!(follows("{a: {$type: 'int'}}", "{a: {$type: ['int', 'long']}}"));
        assert!(follows("{a: {$type: 'int'}}", "{a: {$type: 'number'}}"));
        assert!(!follows("{a: {$type: 'number'}}", "{a: {$type: 'int'}}"));
        assert!(follows("{a: 1}", "{a: {$exists: true}}"));
        assert!(!follows("{a: null}", "{a: {$exists: true}}"));
        assert!(follows("{a: {$ne: null}}", "{a: {$exists: true}}"));
        assert!(!follows("{'a.b': {$ne: null}}", "{'a.b': {$exists: true}}"));
        assert!(!follows("{a: {$lt: MaxKey}}", "{a: {$exists: true}}"));
    }

    #[test]
    fn alternatives_and_conjunctions() {
        assert!(follows("{a: 1, b: 1}", "{a: 1}"));
        assert!(!follows("{a: 1}", "{a: 1, b: 1}"));
        assert!(follows("{a: 1}", "{$or: [{a: 1}, {b: 1}]}"));
        assert!(follows("{$or: [{a: 1}, {a: 2}]}", "{a: {$lt: 3}}"));
        assert!(!follows("{$or: [{a: 1}, {b: 2}]}", "{a: {$lt: 3}}"));
        assert!(follows("{$or: [{a: 1, c: 1}, {b: 2}]}", "{$or: [{b: {$gt: 1}}, {a: 1}]}"));
        assert!(!follows("{}", "{a: {$exists: true}}") && follows("{a: 1}", "{}"));
    }
}
