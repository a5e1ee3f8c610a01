//! Bounds in an index whose keys are paths and values: of the paths that the filter has conditions on, the one whose condition
//! is narrowest.
//!
//! Such an index has no keys of missing fields, nor of whole documents and arrays but those in arrays; conditions that may be
//! satisfied by these are not asked of it.

use super::index_bounds::{IndexBounds, names_array_index};
use super::intervals::{Edge, Interval, IntervalRef, Intervals};
use super::predicates::{Bounds, Keys, Orders, bounds};
use bunko_bson::Value;
use bunko_catalog::{Index, IndexField};
use bunko_matcher::Expression;
use std::collections::HashSet;
use std::sync::Arc;

/// Most paths whose conditions are compared: for each, all conditions are gone over.
const PATHS_MAX: usize = 100;

/// The bounds that `predicates`, all of which hold, give; unbounded where no condition can be asked of the index, which has
/// `before` ordinary fields before the path.
pub(super) fn derive(index: &Arc<Index>, before: usize, predicates: &[Expression], orders: Orders<'_>) -> IndexBounds {
    let mut full = IndexBounds::full(index);
    full.narrow(0..before, predicates, orders);
    // What a key decides of a field before the path is asked again: the others are looked for by a path among several.
    full.decided.clear();
    // A document without any of the paths has a key too.
    full.excludes_missing = before > 0;
    full.spans_paths = before > 0;
    let keys = if full.is_multikey_at(before + 1) { Keys::Several } else { Keys::One };
    let mut best: Option<(usize, &str, Bounds)> = None;
    let mut existing = None;
    // Thousands of conditions may be on one path: they are looked at together, once.
    let mut seen = HashSet::new();
    let paths = predicates.iter().flat_map(paths).filter(|path| seen.insert(*path));
    let asked = paths.filter(|path| index.kind.covers(path) && !names_array_index(path));
    for path in asked.take(PATHS_MAX) {
        let found = predicates.iter().filter_map(|predicate| bounds(predicate, path, keys, orders));
        let found = found.filter(|bounds| bounds.intervals.iter().all(has_keys));
        if let Some(tightest) = found.min_by_key(Bounds::looseness) {
            let looseness = tightest.looseness();
            if best.as_ref().is_none_or(|(other, ..)| looseness < *other) {
                best = Some((looseness, path, tightest));
            }
        } else if predicates.iter().any(|predicate| asks_existence(predicate, path)) {
            existing = Some(path);
        }
    }
    if let Some((_, path, bounds)) = best {
        let paths = Intervals::union(vec![Interval::point(Value::String(path.to_owned()))]);
        // Of long keys the beginning is read, which may end before the path.
        let spans_paths = full.has_long_keys();
        return IndexBounds { spans_paths, ..with(full, before, path, [paths, bounds.intervals]) };
    }
    let Some(path) = existing else { return full };
    // Its own values, and those of the documents that are in its place.
    let at_or_below = Intervals::union(vec![
        Interval::point(Value::String(path.to_owned())),
        Interval {
            start: Value::String(format!("{path}.")),
            start_edge: Edge::Inclusive,
            end: Value::String(format!("{path}/")),
            end_edge: Edge::Exclusive,
        },
    ]);
    let bounds = with(full, before, path, [at_or_below, Intervals::full()]);
    IndexBounds { spans_paths: true, ..bounds }
}

fn with(full: IndexBounds, before: usize, path: &str, [paths, values]: [Intervals; 2]) -> IndexBounds {
    let mut pattern = full.index.fields.to_vec();
    pattern[before + 1] = IndexField { path: path.to_owned(), ..pattern[before + 1].clone() };
    let mut fields = full.fields.clone();
    (fields[before], fields[before + 1]) = (paths, values);
    IndexBounds { pattern: pattern.into(), fields, excludes_missing: true, ..full }
}

/// The paths that an expression has conditions on, as far as one scan can answer it.
fn paths(expression: &Expression) -> Vec<&str> {
    match expression {
        Expression::And(children) | Expression::Or(children) => children.iter().flat_map(paths).collect(),
        other => other.path().map(bunko_matcher::Path::as_str).into_iter().collect(),
    }
}

fn asks_existence(predicate: &Expression, existing: &str) -> bool {
    matches!(predicate, Expression::Exists { path } if path.as_str() == existing)
}

/// Whether all values of an interval have keys wherever they are.
fn has_keys(interval: IntervalRef<'_>) -> bool {
    let is_whole = |value: &Value| matches!(value, Value::Document(_) | Value::Array(_) | Value::MinKey | Value::Null);
    let ends_before_documents = matches!(interval.end, Value::Document(_)) && interval.end_edge == Edge::Exclusive;
    !is_whole(interval.start) && (!is_whole(interval.end) || ends_before_documents)
}
