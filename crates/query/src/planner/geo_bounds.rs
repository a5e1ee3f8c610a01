//! Bounds in a geospatial index with several fields: `{shop: 1, place: '2dsphere', price: 1}`.
//!
//! Its keys hold every combination of a cell of the document's shapes and a value of each other field. So a document that
//! is in the region and satisfies a condition on each of some other fields has a key that is within the bounds of all of
//! them. If several conditions are on one field, only one bounds it, since different elements of an array may satisfy them.
//! The index does not know which of its fields hold arrays.

use super::collated::Orders;
use super::index_bounds::{IndexBounds, names_array_index};
use super::intervals::{Edge, Interval, Intervals};
use super::predicates::{Bounds, Keys, bounds};
use bunko_bson::{StringOrder, Value, ValueRef};
use bunko_catalog::{Index, NumberSpan};
use bunko_matcher::Expression;
use bunko_matcher::planted::{Fault, active};
use std::sync::Arc;

/// The bounds that `predicates` imply on the fields that are not geospatial.
pub(crate) fn beside(index: &Arc<Index>, predicates: &[Expression], strings: &StringOrder) -> IndexBounds {
    let orders = Orders { index: &index.strings, query: strings };
    // A shape may have several cells, and each value of an array is in keys of its own.
    let mut all = IndexBounds { spans_paths: true, ..IndexBounds::full(index) };
    for (position, field) in index.fields.iter().enumerate() {
        if is_geospatial(index, position) || names_array_index(&field.path) {
            continue;
        }
        let found = predicates.iter().filter_map(|predicate| bounds(predicate, &field.path, Keys::Several, orders));
        let found: Vec<Bounds> = found.collect();
        if active(Fault::ElementsNarrowTogether) {
            let together = Intervals::in_all(found.into_iter().map(|bounds| bounds.intervals).collect());
            all.fields[position] = together.unwrap_or_else(Intervals::full);
        } else if let Some(tightest) = found.into_iter().min_by_key(Bounds::looseness) {
            all.fields[position] = tightest.intervals;
        }
    }
    all
}

/// The bounds with these numbers of cells or squares in the field at a path; all numbers for `None`.
pub(crate) fn with_numbers(mut beside: IndexBounds, path: &str, numbers: Option<Vec<NumberSpan>>) -> IndexBounds {
    let position = beside.pattern.iter().position(|field| field.path == path);
    if let (Some(position), Some(numbers)) = (position, numbers) {
        let interval = |(start, end): NumberSpan| Interval {
            start: Value::Int64(start),
            start_edge: Edge::Inclusive,
            end: Value::Int64(end),
            end_edge: Edge::Inclusive,
        };
        beside.fields[position] = Intervals::union(numbers.into_iter().map(interval).collect());
    }
    beside
}

/// Whether a field of the index holds numbers of cells or squares.
fn is_geospatial(index: &Index, position: usize) -> bool {
    let field = index.key_pattern().iter().nth(position);
    field.is_none_or(|field| matches!(field.value, ValueRef::String(_)))
}
