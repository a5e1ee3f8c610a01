//! Decides whether documents that match one filter are known to match another, for partial indexes.
//!
//! **Invariant:** every implication reported is true; some true implications are not found.

use crate::planted::{Fault, active};
use crate::{Comparison, Condition, Expression, Filter, Geo, Path, Regex};
use bunko_bson::{StringOrder, Value, ValueRef, order};

/// Maximum number of node pairs examined; beyond it the answer is no, since filters with many nested alternatives have
/// very many pairs.
const PAIRS_MAX: u32 = 10_000;

/// Maximum number of values of lists that are compared, for the same reason: a list may have a million.
const VALUES_MAX: usize = 250_000;

/// Whether each document that matches all of `premises`, with string order `strings`, also matches `conclusion`.
///
/// A condition on a path holds if some value there satisfies it. So it implies another on the same path if each value
/// that satisfies the first satisfies the second. With different string orders, conditions on strings imply nothing
/// about each other.
pub fn implies(premises: &[Expression], strings: &StringOrder, conclusion: &Filter) -> bool {
    let strings = if strings == conclusion.strings() || active(Fault::OrdersImply) { Some(strings) } else { None };
    Implication { strings, pairs: 0, values: 0 }.of_all(premises, conclusion.root())
}

pub(crate) struct Implication<'s> {
    /// The common string order of both filters, if they have one.
    strings: Option<&'s StringOrder>,
    pairs: u32,
    /// Values of lists that were compared.
    values: usize,
}

impl<'s> Implication<'s> {
    /// For conditions of one filter.
    pub(crate) fn within(strings: &'s StringOrder) -> Self {
        Self { strings: Some(strings), pairs: 0, values: 0 }
    }
}

impl Implication<'_> {
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

    /// Whether each document that matches `premise` also matches `conclusion`. False once too many pairs were examined.
    pub(crate) fn of_one(&mut self, premise: &Expression, conclusion: &Expression) -> bool {
        self.pairs += 1;
        if self.pairs > PAIRS_MAX {
            return false;
        }
        match (premise, conclusion) {
            (Expression::AlwaysFalse, _) | (_, Expression::AlwaysTrue) => true,
            (Expression::Or(children), _) if active(Fault::OneAlternativeImplies) => {
                children.iter().any(|child| self.of_one(child, conclusion))
            }
            (Expression::Or(children), _) => children.iter().all(|child| self.of_one(child, conclusion)),
            (Expression::And(children), _) => self.of_all(children, conclusion),
            (_, Expression::And(children)) => children.iter().all(|child| self.of_one(premise, child)),
            (_, Expression::Or(children)) => children.iter().any(|child| self.of_one(premise, child)),
            _ => self.follows(premise, conclusion),
        }
    }

    /// As `of_one`, for two conditions on paths.
    fn follows(&mut self, premise: &Expression, conclusion: &Expression) -> bool {
        match (premise, conclusion) {
            (_, Expression::OnPath(path, Condition::Exists)) => implies_existence(premise, path),
            (Expression::OnPath(path, premise), Expression::OnPath(other_path, conclusion)) => {
                path == other_path && self.follows_on_path(premise, conclusion)
            }
            _ => false,
        }
    }

    /// As `of_one`, for two conditions on one path.
    fn follows_on_path(&mut self, premise: &Condition, conclusion: &Condition) -> bool {
        match (premise, conclusion) {
            (Condition::Compare(op, value), Condition::Compare(other_op, other)) => {
                self.is_within((*op, value), (*other_op, other))
            }
            (Condition::Compare(Comparison::Eq, value), Condition::In { values, .. }) => self.holds(values, value),
            (Condition::In { values, regexes }, _) => {
                let values = if active(Fault::OneOfListFollows) { &values[..values.len().min(1)] } else { values };
                values.iter().all(|value| match conclusion {
                    Condition::In { values: others, .. } => self.holds(others, value),
                    Condition::Compare(op, other) => self.is_within((Comparison::Eq, value), (*op, other)),
                    _ => false,
                }) && regexes.iter().all(|regex| asks_for_regex(conclusion, regex))
            }
            (Condition::Regex(regex), _) => asks_for_regex(conclusion, regex),
            (Condition::Type(types), Condition::Type(others)) => types.is_within(others),
            (Condition::Geo(geo), Condition::Geo(other)) => Geo::is_same(geo, other),
            _ => false,
        }
    }

    /// Whether a list holds a value. False once too many values were compared.
    fn holds(&mut self, values: &[Value], value: &Value) -> bool {
        if self.values > VALUES_MAX {
            return false;
        }
        let found = values.iter().position(|other| self.is_within((Comparison::Eq, value), (Comparison::Eq, other)));
        self.values += found.map_or(values.len(), |position| position + 1);
        found.is_some()
    }

    /// Whether all values that satisfy one comparison satisfy the other.
    fn is_within(&self, (op, value): (Comparison, &Value), (other_op, other): (Comparison, &Value)) -> bool {
        let (value, other) = (value.as_ref(), other.as_ref());
        let strings = match self.strings {
            Some(strings) => strings,
            None if StringOrder::holds_strings(value) || StringOrder::holds_strings(other) => return false,
            None => StringOrder::BYTES,
        };
        let ordering = strings.compare(value, other);
        if op == other_op && ordering.is_eq() {
            return true;
        }
        // Comparisons only match values of their operand's type, except those with `MinKey` and `MaxKey`.
        let is_comparable = |value: ValueRef<'_>| match value {
            ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey | ValueRef::Array(_) => false,
            ValueRef::Double(number) => !number.is_nan() || active(Fault::NanCompares),
            ValueRef::Decimal128(number) => !number.is_nan(),
            _ => true,
        };
        let is_other = order::rank(value.kind()) != order::rank(other.kind()) && !active(Fault::TypesCompare);
        if is_other || !is_comparable(value) || !is_comparable(other) {
            return false;
        }
        match (op, other_op) {
            (Comparison::Eq, _) => other_op.holds(ordering),
            (Comparison::Lt, Comparison::Lt | Comparison::Lte) => ordering.is_le(),
            (Comparison::Lte, Comparison::Lte) => ordering.is_le(),
            (Comparison::Lte, Comparison::Lt) => ordering.is_lt() || active(Fault::EdgesAlike) && ordering.is_eq(),
            (Comparison::Gt, Comparison::Gt | Comparison::Gte) => ordering.is_ge(),
            (Comparison::Gte, Comparison::Gte) => ordering.is_ge(),
            (Comparison::Gte, Comparison::Gt) => ordering.is_gt(),
            _ => false,
        }
    }
}

/// Whether a condition contains an equal regex, so that it holds for every value that the regex matches.
fn asks_for_regex(condition: &Condition, regex: &Regex) -> bool {
    let is_same = |other: &Regex| {
        other.pattern() == regex.pattern() && (other.options() == regex.options() || active(Fault::RegexOptionsAlike))
    };
    match condition {
        Condition::Regex(other) => is_same(other),
        Condition::In { regexes, .. } => regexes.iter().any(is_same),
        _ => false,
    }
}

/// Whether every document that matches `premise` has a value at the path.
fn implies_existence(premise: &Expression, existing: &Path) -> bool {
    // A missing value counts as null, and is within MinKey and MaxKey.
    let is_present =
        |value: &Value| !matches!(value, Value::Null | Value::MinKey | Value::MaxKey) || active(Fault::MissingExists);
    match premise {
        Expression::OnPath(path, condition) => {
            path == existing
                && match condition {
                    Condition::Compare(_, value) => is_present(value),
                    Condition::In { values, .. } => values.iter().all(is_present),
                    Condition::Regex(_) | Condition::Exists | Condition::Type(_) | Condition::Mod { .. } => true,
                    Condition::Size(_) | Condition::ElemMatchObject(_) | Condition::ElemMatchValue(_) => true,
                    Condition::Bits(..) | Condition::Geo(_) => true,
                    Condition::Near(_) => false,
                }
        }
        // An empty array on the way has no value, but is not null either.
        Expression::Not(child) => match child.as_ref() {
            Expression::OnPath(path, Condition::Compare(Comparison::Eq, Value::Null)) => {
                path == existing && (!path.as_str().contains('.') || active(Fault::NotNullExistsBelowArrays))
            }
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::collators::WithoutCase;
    use bunko_testkit::shell;
    use std::sync::Arc;

    fn follows(premise: &str, conclusion: &str) -> bool {
        follows_in(premise, StringOrder::BYTES, conclusion, StringOrder::BYTES)
    }

    fn follows_in(premise: &str, strings: &StringOrder, conclusion: &str, others: &StringOrder) -> bool {
        let parse = |filter: &str, strings: &StringOrder| {
            let filter = shell::parse_document(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
            Filter::parse_collated(filter.as_ref(), strings).expect("a filter")
        };
        implies(&[parse(premise, strings).root().clone()], strings, &parse(conclusion, others))
    }

    #[test]
    fn long_lists_are_compared_up_to_a_limit() {
        let list = |count: usize| {
            let values: Vec<_> = (0..count).map(|value| value.to_string()).collect();
            format!("{{a: {{$in: [{}]}}}}", values.join(", "))
        };
        assert!(follows(&list(500), &list(600)));
        assert!(!follows(&list(600), &list(500)));
        assert!(!follows(&list(1_000), &list(1_000)), "500,500 values would be compared");
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

    #[test]
    fn places_and_regexes_follow_from_themselves() {
        assert!(follows("{a: /x/i, b: 1}", "{a: {$regex: 'x', $options: 'i'}}"));
        assert!(!follows("{a: /x/}", "{a: /x/i}") && !follows("{a: /x/}", "{b: /x/}"));
        assert!(follows("{a: {$in: [/x/, 1]}}", "{a: {$in: [1, /y/, /x/]}}"));
        assert!(follows("{a: /x/}", "{a: {$in: [1, /x/]}}"));
        assert!(!follows("{a: {$in: [/x/, 1]}}", "{a: {$in: [1, /y/]}}"));
        let square = "{$geoWithin: {$box: [[0, 0], [1, 1]]}}";
        assert!(follows(&format!("{{a: {square}}}"), "{a: {$geoWithin: {$box: [[0.0, 0.0], [1, 1]]}}}"));
        assert!(follows(&format!("{{a: {square}}}"), "{a: {$within: {$box: [[0, 0], [1, 1]]}}}"));
        assert!(!follows(&format!("{{a: {square}}}"), "{a: {$geoWithin: {$box: [[0, 0], [1, 2]]}}}"));
        assert!(!follows(&format!("{{b: {square}}}"), &format!("{{a: {square}}}")));
        assert!(follows(&format!("{{a: {square}}}"), "{a: {$exists: true}}"));
        let point = "{$geometry: {type: 'Polygon', coordinates: [[[0, 0], [1, 1], [1, 0], [0, 0]]]}}";
        assert!(!follows(&format!("{{a: {{$geoIntersects: {point}}}}}"), &format!("{{a: {{$geoWithin: {point}}}}}")));
    }

    #[test]
    fn strings_follow_from_strings_in_the_same_order_alone() {
        let (bytes, without_case) = (StringOrder::BYTES, &StringOrder::collated(Arc::new(WithoutCase)));
        assert!(follows_in("{a: 'X'}", without_case, "{a: 'x'}", without_case));
        assert!(follows_in("{a: {$gt: 'C'}}", without_case, "{a: {$gte: 'b'}}", without_case));
        assert!(!follows_in("{a: 'x'}", without_case, "{a: 'x'}", bytes));
        assert!(!follows_in("{a: 'x'}", bytes, "{a: {$in: ['x', 'y']}}", without_case));
        assert!(!follows_in("{a: {b: ['x']}}", bytes, "{a: {b: ['x']}}", without_case));
        assert!(follows_in("{a: 5, b: 'x'}", bytes, "{a: {$gt: 3}, b: {$exists: true}}", without_case));
    }
}
