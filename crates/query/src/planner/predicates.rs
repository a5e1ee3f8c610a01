//! Derives bounds on the values of one index path from a filter.
//!
//! **Invariant:** every document that matches an expression has, in an index on the path, at least one key within the
//! expression's bounds. The reverse holds only for [`Exactness::Exact`] bounds; for all others the filter is evaluated
//! after the fetch.

use super::collated::{self, Orders};
use super::elements::{have_own_keys, is_told_by_element};
use super::intervals::{Edge, Interval, Intervals};
use bunko_bson::{ObjectId, Timestamp, Type, Value, ValueRef, order};
use bunko_matcher::planted::{Fault, active};
use bunko_matcher::{Comparison, Condition, Expr, ExprComparison, Expression, Path, Regex, TypeSet};
use std::sync::Arc;

/// Whether each key within the bounds means a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exactness {
    Exact,
    Inexact,
}

impl Exactness {
    fn and(self, other: Self) -> Self {
        if self == Self::Exact { other } else { self }
    }
}

/// Number of keys that a document may have for the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// No document has an array on the path.
    One,
    /// Some document may have an array, so different keys may satisfy two predicates.
    Several,
}

/// The path of an expression that the index field stands for.
#[derive(Clone, Copy)]
enum IndexedPath<'p> {
    Named(&'p str, Breadth),
    /// The element itself, inside `{$elemMatch: {$gt: 1}}`.
    Itself,
}

/// How wide the bounds of a pattern may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breadth {
    /// All values of a type: the condition is checked on each key, before documents are read.
    Type,
    /// Fewer: documents are read for all keys within the bounds.
    Part,
}

impl IndexedPath<'_> {
    fn breadth(self) -> Breadth {
        match self {
            Self::Named(_, breadth) => breadth,
            Self::Itself => Breadth::Part,
        }
    }

    fn is(self, path: &Path) -> bool {
        match self {
            Self::Named(name, _) => path.is(name),
            Self::Itself => path.is_itself(),
        }
    }
}

/// The intervals of matching keys.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub intervals: Intervals,
    pub exactness: Exactness,
}

impl Bounds {
    fn new(intervals: Vec<Interval>, exactness: Exactness) -> Self {
        Self { intervals: Intervals::union(intervals), exactness }
    }

    /// The same intervals, which the filter still decides.
    pub fn inexact(self) -> Self {
        Self { exactness: Exactness::Inexact, ..self }
    }

    /// How little these bounds narrow a scan; smaller is better.
    pub fn looseness(&self) -> usize {
        if self.intervals.is_points() { self.intervals.len() } else { usize::MAX }
    }
}

/// Bounds that `expression` implies on the keys at `path`, if any, with values in the form of the keys.
///
/// If the path has a name of digits, the expression must be one that [`positions`](super::positions) serves.
pub(crate) fn bounds(expression: &Expression, path: &str, keys: Keys, orders: Orders<'_>) -> Option<Bounds> {
    let is_checked = keys == Keys::One || is_told_by_element(expression, path);
    let breadth = if is_checked { Breadth::Type } else { Breadth::Part };
    let expression = collated::in_keys(expression, path, orders)?;
    derive(&expression, IndexedPath::Named(path, breadth), keys)
}

fn derive(expression: &Expression, target: IndexedPath<'_>, keys: Keys) -> Option<Bounds> {
    match expression {
        Expression::OnPath(path, Condition::ElemMatchObject(filter)) => below_element(path, filter, target),
        Expression::OnPath(path, condition) if target.is(path) => on_path(path, condition, target, keys),
        Expression::Not(child) => negation(child, target, keys),
        Expression::Nor(children) => none_of(children, target, keys),
        Expression::Expr(expr) if keys == Keys::One || active(Fault::ExprBelowArrays) => {
            comparisons_of_expr(expr, target)
        }
        Expression::Or(children) => any(children, target, keys),
        Expression::And(children) => all(children, target, keys),
        _ => None,
    }
}

/// As `derive`, for a condition on the target's path.
fn on_path(path: &Path, condition: &Condition, target: IndexedPath<'_>, keys: Keys) -> Option<Bounds> {
    match condition {
        Condition::Compare(op, value) => comparison(*op, value, of_null(path, keys)),
        Condition::In { values, regexes } => list(values, regexes, target.breadth(), of_null(path, keys)),
        Condition::Regex(regex) => {
            let (intervals, exactness) = regex_intervals(regex, target.breadth())?;
            Some(Bounds::new(intervals, exactness))
        }
        Condition::Mod { .. } if target.breadth() == Breadth::Type => {
            Some(Bounds::new(vec![numbers()], Exactness::Inexact))
        }
        Condition::Type(types) => of_types(types),
        // An array inside an array is a key itself, and its elements have none.
        Condition::ElemMatchValue(_) if matches!(target, IndexedPath::Itself) => None,
        Condition::ElemMatchValue(condition) => {
            // One element satisfies the whole condition, and it has one key.
            let bounds = derive(condition, IndexedPath::Itself, Keys::One);
            if active(Fault::ElementIsExact) { bounds } else { bounds.map(Bounds::inexact) }
        }
        _ => None,
    }
}

fn any(children: &[Expression], target: IndexedPath<'_>, keys: Keys) -> Option<Bounds> {
    let mut union = Vec::new();
    let mut exactness = Exactness::Exact;
    for child in children {
        let bounds = derive(child, target, keys)?;
        exactness = exactness.and(bounds.exactness);
        union.extend(bounds.intervals.into_vec());
    }
    Some(Bounds::new(union, exactness))
}

fn all(children: &[Expression], target: IndexedPath<'_>, keys: Keys) -> Option<Bounds> {
    together(children.iter().map(|child| derive(child, target, keys)).collect(), keys)
}

/// Bounds of conditions that all hold; `None` stands for a condition without bounds.
fn together(derived: Vec<Option<Bounds>>, keys: Keys) -> Option<Bounds> {
    let (is_whole, is_several) = (derived.iter().all(Option::is_some), derived.len() > 1);
    let mut bounds = derived.into_iter().flatten();
    let combined = match keys {
        keys if keys == Keys::One || active(Fault::RangesOfElementsJoined) => {
            let (intervals, exactness): (_, Vec<_>) = bounds.map(|one| (one.intervals, one.exactness)).unzip();
            let exactness = exactness.into_iter().fold(Exactness::Exact, Exactness::and);
            Bounds { intervals: Intervals::in_all(intervals)?, exactness }
        }
        _ => {
            let first = bounds.next()?;
            let tightest = bounds.fold(first, |a, b| if b.looseness() < a.looseness() { b } else { a });
            if is_several && !active(Fault::OneOfSeveralDecides) { tightest.inexact() } else { tightest }
        }
    };
    Some(if is_whole { combined } else { combined.inexact() })
}

/// Bounds for a negation: the keys that the negated condition has not. This needs exact bounds, since a document with
/// keys in inexact ones may not satisfy the condition. An array whose elements are all outside the bounds has some key
/// outside; that an element is outside does not decide.
fn negation(child: &Expression, target: IndexedPath<'_>, keys: Keys) -> Option<Bounds> {
    let negated = match child {
        Expression::OnPath(path, Condition::Exists) if target.is(path) => {
            return Some(Bounds::new(vec![Interval::point(Value::Null)], Exactness::Inexact));
        }
        // MongoDB has no bounds for a negated pattern.
        Expression::OnPath(_, Condition::In { regexes, .. }) if !regexes.is_empty() => return None,
        Expression::OnPath(_, Condition::Compare(_, Value::Regex { .. })) => return None,
        Expression::OnPath(path, Condition::In { values, .. })
            if target.is(path) && of_null(path, keys) == Exactness::Exact =>
        {
            let is_array = values.iter().any(|value| matches!(value, Value::Array(_)));
            (!is_array)
                .then(|| Bounds { intervals: Intervals::points(Arc::clone(values)), exactness: Exactness::Exact })
        }
        Expression::OnPath(_, Condition::Compare(..) | Condition::In { .. }) => derive(child, target, keys),
        Expression::And(_) | Expression::Or(_) => derive(child, target, keys),
        _ => return None,
    }?;
    let exactness = if keys == Keys::One { Exactness::Exact } else { Exactness::Inexact };
    let intervals = negated.intervals.complement();
    let is_exact = negated.exactness == Exactness::Exact || active(Fault::InexactNegated);
    (is_exact && !intervals.is_full()).then_some(Bounds { intervals, exactness })
}

/// Whether every document with the key of null equals null, as a missing field does. Inside an array, an element that is
/// not a document has that key, and does not equal null.
fn of_null(path: &Path, keys: Keys) -> Exactness {
    let is_exact = keys == Keys::One || !path.as_str().contains('.') || active(Fault::NullIsExactBelowArrays);
    if is_exact { Exactness::Exact } else { Exactness::Inexact }
}

/// Bounds for a `$nor`: those of each negation together.
fn none_of(children: &[Expression], target: IndexedPath<'_>, keys: Keys) -> Option<Bounds> {
    let negations: Vec<_> = children.iter().map(|child| negation(child, target, keys)).collect();
    together(negations, keys)
}

/// Bounds for the comparisons that an `$expr` implies, in an index without arrays on the path. The filter still decides:
/// the key of null does not tell a missing field from null.
fn comparisons_of_expr(expr: &Expr, target: IndexedPath<'_>) -> Option<Bounds> {
    let IndexedPath::Named(name, _) = target else { return None };
    let own = expr.implied().iter().filter(|implied| implied.path == name);
    let intervals = own.map(|ExprComparison { op, value, .. }| {
        let (value, edge) = (|| value.clone(), if op.includes_equality() { Edge::Inclusive } else { Edge::Exclusive });
        Intervals::union(vec![match op {
            Comparison::Eq => Interval::point(value()),
            // A missing field is less than null.
            Comparison::Lt if matches!(value(), Value::Null) && !active(Fault::MissingNotBelowNull) => {
                Interval { end: value(), ..Interval::full() }
            }
            Comparison::Lt | Comparison::Lte => Interval { end: value(), end_edge: edge, ..Interval::full() },
            Comparison::Gt | Comparison::Gte => Interval { start: value(), start_edge: edge, ..Interval::full() },
        }])
    });
    let intervals = intervals.reduce(|all, next| all.intersection(&next)).filter(|all| !all.is_full())?;
    Some(Bounds { intervals, exactness: Exactness::Inexact })
}

/// All numbers.
fn numbers() -> Interval {
    let least = if active(Fault::NanIsNoNumber) { f64::NEG_INFINITY } else { f64::NAN };
    Interval { start: Value::Double(least), end: Value::Double(f64::INFINITY), ..Interval::full() }
}

/// The brackets of types whose values have keys of their own. An array has the keys of its elements, and null the key
/// of a missing field.
fn of_types(types: &TypeSet) -> Option<Bounds> {
    if types.contains(Type::Array) {
        return None;
    }
    let of_type = |kind| {
        if let Some((start, end, end_edge)) = bracket(kind) {
            let is_number = order::rank(kind) == order::rank(Type::Double);
            let strict = Interval { start, start_edge: Edge::Inclusive, end, end_edge };
            return Some(if is_number { numbers() } else { strict });
        }
        Some(Interval::point(match kind {
            Type::Null => Value::Null,
            Type::Undefined => Value::Undefined,
            Type::MinKey => Value::MinKey,
            Type::MaxKey => Value::MaxKey,
            _ => return None,
        }))
    };
    let kinds = (0..=u8::MAX).filter_map(Type::from_byte).filter(|kind| types.contains(*kind));
    Some(Bounds::new(kinds.map(of_type).collect::<Option<_>>()?, Exactness::Inexact))
}

/// Bounds for `a.b` from `{a: {$elemMatch: {b: ...}}}`.
fn below_element(path: &Path, filter: &Expression, target: IndexedPath<'_>) -> Option<Bounds> {
    let IndexedPath::Named(name, _) = target else { return None };
    Some(derive(filter, IndexedPath::Named(path.below(name)?, Breadth::Part), Keys::Several)?.inexact())
}

fn comparison(op: Comparison, value: &Value, of_null: Exactness) -> Option<Bounds> {
    if op == Comparison::Eq || op.includes_equality() && matches!(value, Value::Null) {
        let mut intervals = Vec::with_capacity(2);
        let exactness = equality(value, of_null, &mut intervals);
        return Some(Bounds::new(intervals, exactness));
    }
    let equal_only = || {
        let intervals = if op.includes_equality() { vec![Interval::point(value.clone())] } else { Vec::new() };
        Some(Bounds::new(intervals, Exactness::Inexact))
    };
    match (value, op) {
        (Value::MinKey, Comparison::Gt | Comparison::Gte) | (Value::MaxKey, Comparison::Lt | Comparison::Lte)
            if !active(Fault::EndsHaveRanges) =>
        {
            None
        }
        (Value::Null | Value::MinKey | Value::MaxKey, _) => equal_only(),
        (Value::Double(number), _) if number.is_nan() && !active(Fault::NanHasRange) => equal_only(),
        (Value::Decimal128(number), _) if number.is_nan() => equal_only(),
        _ => Some(Bounds::new(vec![within_bracket(op, value)?], Exactness::Exact)),
    }
}

/// Adds the keys of documents whose path equals `value`.
fn equality(value: &Value, of_null: Exactness, intervals: &mut Vec<Interval>) -> Exactness {
    intervals.push(Interval::point(value.clone()));
    match value {
        Value::Null => of_null,
        // An array has the keys of its elements; only an array inside another array is a key itself.
        Value::Array(array) if !active(Fault::ArrayHasOwnKey) => {
            let first = array.as_ref().get(0).unwrap_or(ValueRef::Undefined);
            intervals.push(Interval::point(first.to_value()));
            Exactness::Inexact
        }
        _ => Exactness::Exact,
    }
}

fn list(values: &Arc<Vec<Value>>, regexes: &[Regex], breadth: Breadth, of_null: Exactness) -> Option<Bounds> {
    if regexes.is_empty() && have_own_keys(values) {
        return Some(Bounds { intervals: Intervals::points(Arc::clone(values)), exactness: Exactness::Exact });
    }
    let mut intervals = Vec::with_capacity(values.len() + 2 * regexes.len());
    let mut exactness = Exactness::Exact;
    for value in values.iter() {
        exactness = exactness.and(equality(value, of_null, &mut intervals));
    }
    for regex in regexes {
        let (found, regex_exactness) = regex_intervals(regex, breadth)?;
        exactness = exactness.and(regex_exactness);
        intervals.extend(found);
    }
    Some(Bounds::new(intervals, exactness))
}

/// The interval from the operand to the end of its type bracket.
fn within_bracket(op: Comparison, value: &Value) -> Option<Interval> {
    let (lowest, highest, highest_edge) = bracket(value.as_ref().kind())?;
    let is_inclusive = op.includes_equality() && !active(Fault::InclusiveEdgeLeftOut);
    let edge = if is_inclusive { Edge::Inclusive } else { Edge::Exclusive };
    Some(match op {
        Comparison::Lt | Comparison::Lte => {
            Interval { start: lowest, start_edge: Edge::Inclusive, end: value.clone(), end_edge: edge }
        }
        _ => Interval { start: value.clone(), start_edge: edge, end: highest, end_edge: highest_edge },
    })
}

/// The lowest and highest values that a comparison with this type can match. `None` for types without a range of keys,
/// such as arrays, whose keys are their elements.
fn bracket(kind: Type) -> Option<(Value, Value, Edge)> {
    let empty_document = || Value::Document(bunko_bson::DocumentBuf::new());
    Some(match kind {
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => {
            (Value::Double(f64::NEG_INFINITY), Value::Double(f64::INFINITY), Edge::Inclusive)
        }
        Type::String | Type::Symbol => (Value::String(String::new()), empty_document(), Edge::Exclusive),
        Type::Document => (empty_document(), Value::Array(bunko_bson::ArrayBuf::new()), Edge::Exclusive),
        Type::Binary => {
            (Value::Binary { subtype: 0, bytes: Vec::new() }, Value::ObjectId(ObjectId([0; 12])), Edge::Exclusive)
        }
        Type::ObjectId => (Value::ObjectId(ObjectId([0; 12])), Value::ObjectId(ObjectId([0xff; 12])), Edge::Inclusive),
        Type::Boolean => (Value::Boolean(false), Value::Boolean(true), Edge::Inclusive),
        Type::DateTime => (Value::DateTime(i64::MIN), Value::DateTime(i64::MAX), Edge::Inclusive),
        Type::Timestamp => (
            Value::Timestamp(Timestamp { seconds: 0, increment: 0 }),
            Value::Timestamp(Timestamp { seconds: u32::MAX, increment: u32::MAX }),
            Edge::Inclusive,
        ),
        _ => return None,
    })
}

/// Strings with the regex's literal prefix, or all strings, and the regex itself as a value. `None` if that is too wide.
fn regex_intervals(regex: &Regex, breadth: Breadth) -> Option<(Vec<Interval>, Exactness)> {
    let (literal, is_exact) = match regex.prefix() {
        Some(prefix) => (prefix.literal, prefix.exact),
        None if breadth == Breadth::Type => (String::new(), false),
        None => return None,
    };
    let end = string_after(&literal).map_or_else(|| Value::Document(bunko_bson::DocumentBuf::new()), Value::String);
    let strings =
        Interval { start: Value::String(literal), start_edge: Edge::Inclusive, end, end_edge: Edge::Exclusive };
    let itself = Value::Regex { pattern: regex.pattern().to_owned(), options: regex.options().to_owned() };
    let exactness = if is_exact || active(Fault::PatternIsExact) { Exactness::Exact } else { Exactness::Inexact };
    let mut intervals = vec![strings];
    intervals.extend((!active(Fault::RegexIsNoValue)).then(|| Interval::point(itself)));
    Some((intervals, exactness))
}

/// The smallest string above all that start with `prefix`.
fn string_after(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        // The order of characters is that of their bytes; the range of `char`s steps over the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::StringOrder;
    use bunko_matcher::Filter;
    use bunko_testkit::shell;

    fn of(filter: &str, path: &str, keys: Keys) -> String {
        let filter = shell::parse_document(filter).expect("a document");
        let filter = Filter::parse(filter.as_ref()).expect("a filter");
        match bounds(filter.root(), path, keys, Orders { index: StringOrder::BYTES, query: StringOrder::BYTES }) {
            None => "none".to_owned(),
            Some(bounds) => {
                let intervals: Vec<_> = bounds.intervals.iter().map(|interval| interval.to_string()).collect();
                format!("{:?} {}", bounds.exactness, intervals.join(" "))
            }
        }
    }

    #[test]
    fn brackets_start_and_end_within_their_type_or_at_the_next() {
        for kind in [Type::Int32, Type::String, Type::Document, Type::Binary, Type::ObjectId, Type::DateTime] {
            let (lowest, highest, edge) = bracket(kind).expect("bounded");
            assert_eq!(order::rank(lowest.as_ref().kind()), order::rank(kind));
            let ends_inside = order::rank(highest.as_ref().kind()) == order::rank(kind);
            assert_eq!(ends_inside, edge == Edge::Inclusive, "{kind:?}");
        }
    }

    #[test]
    fn predicates_on_one_key_intersect_and_on_several_do_not() {
        assert_eq!(of("{a: {$gt: 1, $lt: 5}}", "a", Keys::One), "Exact (1, 5)");
        assert_eq!(of("{a: {$gt: 1, $lt: 5}}", "a", Keys::Several), "Inexact [-inf.0, 5)");
        assert_eq!(of("{a: {$elemMatch: {$gt: 1, $lt: 5}}}", "a", Keys::Several), "Inexact (1, 5)");
        assert_eq!(of("{a: {$gt: 1, $in: [3, 9]}}", "a", Keys::Several), "Inexact [3, 3] [9, 9]");
    }

    #[test]
    fn arrays_nulls_and_missing_values_have_the_keys_that_the_index_gives_them() {
        assert_eq!(of("{a: [1, 2]}", "a", Keys::Several), "Inexact [1, 1] [[ 1, 2 ], [ 1, 2 ]]");
        assert_eq!(of("{a: []}", "a", Keys::Several), "Inexact [undefined, undefined] [[], []]");
        assert_eq!(of("{a: null}", "a", Keys::Several), "Exact [null, null]");
        assert_eq!(of("{'a.b': null}", "a.b", Keys::One), "Exact [null, null]");
        assert_eq!(of("{'a.b': {$in: [null, 3]}}", "a.b", Keys::Several), "Inexact [null, null] [3, 3]");
        assert_eq!(of("{a: {$lte: null}}", "a", Keys::One), "Exact [null, null]");
        assert_eq!(of("{a: {$exists: false}}", "a", Keys::One), "Inexact [null, null]");
        assert_eq!(of("{a: {$exists: false}}", "a", Keys::Several), "Inexact [null, null]");
        assert_eq!(of("{a: {$gt: [1]}}", "a", Keys::One), "none");
        assert_eq!(of("{a: {$elemMatch: {b: 1, c: null}}}", "a.b", Keys::Several), "Inexact [1, 1]");
        assert_eq!(of("{a: {$elemMatch: {b: 1, c: null}}}", "a.c", Keys::Several), "Inexact [null, null]");
    }

    #[test]
    fn negations_are_complements_of_exact_bounds() {
        assert_eq!(of("{a: {$ne: 1}}", "a", Keys::One), "Exact [MinKey, 1) (1, MaxKey]");
        assert_eq!(of("{a: {$ne: 1}}", "a", Keys::Several), "Inexact [MinKey, 1) (1, MaxKey]");
        assert_eq!(
            of("{a: {$nin: [null, 'x']}}", "a", Keys::Several),
            "Inexact [MinKey, null) (null, \"x\") (\"x\", MaxKey]"
        );
        assert_eq!(of("{'a.b': {$ne: null}}", "a.b", Keys::One), "Exact [MinKey, null) (null, MaxKey]");
        assert_eq!(of("{$nor: [{a: {$lt: 3}}, {b: 1}]}", "a", Keys::One), "Inexact [MinKey, -inf.0) [3, MaxKey]");
        assert_eq!(of("{a: {$not: {$gt: 1, $lt: 5}}}", "a", Keys::One), "Exact [MinKey, 1] [5, MaxKey]");
        assert_eq!(of("{a: {$type: ['number', 'bool']}}", "a", Keys::Several), "Inexact [nan.0, inf.0] [false, true]");
        for none in [
            "{'a.b': {$not: {$gt: 1, $lt: 5}}}",
            "{'a.b': {$ne: null}}",
            "{'a.b': {$not: {$type: 'int'}}}",
            "{'a.b': {$nin: [/^x/]}}",
            "{'a.b': {$ne: [1]}}",
        ] {
            assert_eq!(of(none, "a.b", Keys::Several), "none", "{none}");
        }
    }

    #[test]
    fn ends_of_the_order_and_regexes() {
        assert_eq!(of("{a: {$gt: MinKey}}", "a", Keys::One), "none");
        assert_eq!(of("{a: {$lte: MinKey}}", "a", Keys::One), "Inexact [MinKey, MinKey]");
        assert_eq!(of("{a: {$lt: NaN}}", "a", Keys::One), "Inexact ");
        assert_eq!(of("{a: /^ab/}", "a", Keys::One), "Exact [\"ab\", \"ac\") [/^ab/, /^ab/]");
        assert_eq!(of("{a: /ab/}", "a", Keys::One), "Inexact [\"\", {}) [/ab/, /ab/]");
        assert_eq!(string_after("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(string_after("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(string_after("\u{10ffff}"), None);
    }

    #[test]
    fn alternatives_on_one_path_unite() {
        assert_eq!(of("{$or: [{a: 1}, {a: {$gt: 7}}]}", "a", Keys::Several), "Exact [1, 1] (7, inf.0]");
        assert_eq!(of("{$or: [{a: 1}, {b: 1}]}", "a", Keys::One), "none");
    }
}
