//! Bounds in an index whose keys hold a path and a value: the filter's path with the narrowest condition is used.
//!
//! Such an index has no keys for missing fields, and for whole documents and arrays only inside arrays, so it cannot
//! serve conditions that these may satisfy. If a condition implies some value at its path, all keys of that path and of
//! paths below it lead to its documents.

use super::collated::Orders;
use super::index_bounds::{IndexBounds, names_array_index};
use super::intervals::{Edge, Interval, IntervalRef, Intervals};
use super::predicates::{Bounds, Keys, bounds};
use bunko_bson::{Type, Value, order};
use bunko_catalog::{Index, IndexField};
use bunko_matcher::planted::{Fault, active};
use bunko_matcher::{Comparison, Condition, Expression};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of paths compared; for each path, all conditions are examined.
const PATHS_MAX: usize = 100;

/// The bounds that the conjunction `predicates` implies; unbounded if no condition can use the index. The index has
/// `before` ordinary fields before the path.
pub(super) fn derive(index: &Arc<Index>, before: usize, predicates: &[Expression], orders: Orders<'_>) -> IndexBounds {
    let mut full = IndexBounds::full(index);
    full.narrow(0..before, predicates, orders);
    // Fields before the path are checked again on the document, since only one of several paths is searched.
    full.decided.clear();
    // A document with none of the paths has a key too.
    full.excludes_missing = before > 0;
    full.spans_paths = before > 0;
    let keys = if full.is_multikey_at(before + 1) { Keys::Several } else { Keys::One };
    let mut best: Option<(usize, &str, Bounds)> = None;
    for path in paths_to_compare(index, predicates) {
        let found = predicates.iter().filter_map(|predicate| bounds(predicate, path, keys, orders));
        let found = found.filter(|bounds| bounds.intervals.iter().all(has_keys));
        if let Some(tightest) = found.min_by_key(Bounds::looseness) {
            let looseness = tightest.looseness();
            if best.as_ref().is_none_or(|(other, ..)| looseness < *other) {
                best = Some((looseness, path, tightest));
            }
        }
    }
    if let Some((_, path, bounds)) = best {
        let paths = Intervals::union(vec![Interval::point(Value::String(path.to_owned()))]);
        // Only the start of a long key is read, and it may end before the path.
        let spans_paths = full.has_long_keys();
        return IndexBounds { spans_paths, ..with(full, before, path, [paths, bounds.intervals]) };
    }
    let places = predicates.iter().filter_map(|predicate| place_of_presence(predicate, keys));
    let Some(path) = places.take(PATHS_MAX).find(|path| index.kind.covers_below(path)) else { return full };
    // The path's own values, and the values inside documents at the path.
    let at_or_below = Intervals::union(vec![
        Interval::point(Value::String(path.clone())),
        Interval {
            start: Value::String(format!("{path}.")),
            start_edge: Edge::Inclusive,
            end: Value::String(format!("{path}/")),
            end_edge: Edge::Exclusive,
        },
    ]);
    let bounds = with(full, before, &path, [at_or_below, Intervals::full()]);
    IndexBounds { spans_paths: true, ..bounds }
}

/// The paths of conditions that an index holds, each once: one path may have thousands of conditions.
pub(super) fn paths_to_compare<'p>(index: &Index, predicates: &'p [Expression]) -> impl Iterator<Item = &'p str> {
    let mut seen = HashSet::new();
    let paths = predicates.iter().flat_map(paths).filter(move |path| seen.insert(*path));
    paths.filter(|path| index.kind.covers(path) && !names_array_index(path)).take(PATHS_MAX)
}

fn with(full: IndexBounds, before: usize, path: &str, [paths, values]: [Intervals; 2]) -> IndexBounds {
    let mut pattern = full.index.fields.to_vec();
    pattern[before + 1] = IndexField { path: path.to_owned(), ..pattern[before + 1].clone() };
    let mut fields = full.fields.clone();
    (fields[before], fields[before + 1]) = (paths, values);
    IndexBounds { pattern: pattern.into(), fields, excludes_missing: true, ..full }
}

/// Paths of an expression's conditions, as far as one scan can answer it.
fn paths(expression: &Expression) -> Vec<&str> {
    match expression {
        Expression::And(children) | Expression::Or(children) => children.iter().flat_map(paths).collect(),
        other => other.path().map(bunko_matcher::Path::as_str).into_iter().collect(),
    }
}

/// The path at which every document that satisfies the predicate has some value, if MongoDB answers such a predicate
/// with a wildcard index. Excluded are null, which a missing field equals; comparisons with whole documents or arrays,
/// unless empty; and negations, except of null.
fn place_of_presence(predicate: &Expression, keys: Keys) -> Option<String> {
    let path = match predicate {
        Expression::And(children) => return children.iter().find_map(|child| place_of_presence(child, keys)),
        Expression::OnPath(path, condition) => {
            let is_present = match condition {
                Condition::Exists | Condition::Type(_) | Condition::Regex(_) | Condition::Mod { .. } => true,
                Condition::Compare(op, value) => is_answered(*op, value),
                Condition::In { values, .. } => values.iter().all(|value| is_answered(Comparison::Eq, value)),
                Condition::ElemMatchObject(inner) | Condition::ElemMatchValue(inner) => {
                    place_of_presence(inner, keys).is_some()
                }
                _ => false,
            };
            is_present.then_some(path)?
        }
        // An empty array on the way is not null, and has no key for the path.
        Expression::Not(child)
            if keys == Keys::One || child.path().is_some_and(|path| !path.as_str().contains('.')) =>
        {
            negated_null(child)?
        }
        _ => return None,
    };
    Some(before_array_index(path.as_str()).to_owned())
}

fn negated_null(predicate: &Expression) -> Option<&bunko_matcher::Path> {
    let Expression::OnPath(path, condition) = predicate else { return None };
    let asks_for_null = match condition {
        Condition::Compare(op, Value::Null) => op.includes_equality(),
        Condition::In { values, regexes } => regexes.is_empty() && matches!(values[..], [Value::Null]),
        _ => false,
    };
    asks_for_null.then_some(path)
}

fn is_answered(op: Comparison, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Document(document) => op == Comparison::Eq && document.as_ref().is_empty(),
        Value::Array(array) => op == Comparison::Eq && array.as_ref().is_empty(),
        // Missing fields are on the other side of these values.
        Value::MinKey | Value::MaxKey => op == Comparison::Eq,
        _ => true,
    }
}

/// The part of a path before its first numeric component after a name. If that component is an array position, the keys
/// are those of the array's path and of paths below it.
fn before_array_index(path: &str) -> &str {
    let is_number = |component: &str| component.bytes().all(|byte| byte.is_ascii_digit());
    let mut end = path.find('.').unwrap_or(path.len());
    for component in path.split('.').skip(1) {
        if is_number(component) {
            return &path[..end];
        }
        end += 1 + component.len();
    }
    path
}

/// Whether every value in the interval has a key wherever it occurs: documents and arrays may have none, and null is
/// also the value of a missing field.
fn has_keys(interval: IntervalRef<'_>) -> bool {
    let rank = |value: &Value| order::rank(value.as_ref().kind());
    let (start, end) = (rank(interval.start), rank(interval.end));
    let holds = |kind| (start..=end).contains(&order::rank(kind));
    let ends_before_documents = matches!(interval.end, Value::Document(_)) && interval.end_edge == Edge::Exclusive;
    let holds_documents = holds(Type::Document) && !(ends_before_documents && start < end) || holds(Type::Array);
    !holds_documents && !holds(Type::MinKey) && !holds(Type::Null) || active(Fault::WildcardHoldsMissing)
}
