//! Decides whether an index yields documents in the order of a sort.
//!
//! `{a: {$in: [1, 2]}}` sorted by `b` has no order in one scan of `{a: 1, b: 1}`. Each value of `a` alone has it, so
//! one scan per value runs, and the scans are merged: MongoDB calls this "explode for sort".

use super::index_bounds::IndexBounds;
use super::intervals::Intervals;
use super::key_ranges::RANGES_MAX;
use bunko_bson::key_string;
use bunko_catalog::Answers;
use bunko_expression::SortPattern;
use bunko_matcher::planted::{Fault, active};
use bunko_store::Direction;

/// Maximum number of scans that are merged. Source: MongoDB 8.2, parameter `internalQueryMaxScansToExplode`.
pub(super) const MERGED_SCANS_MAX: usize = 200;

/// The order in which documents come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    AsAsked,
    Any,
}

/// How an index gives the order of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenOrder {
    pub direction: Direction,
    /// Number of leading fields whose values are scanned one by one and merged; 0 if one scan gives the order.
    pub split_fields: usize,
}

/// Whether merged scans of single values give an order that one scan does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// No number of scans gives the order.
    Impossible,
    TooMany,
    Into(GivenOrder),
}

impl GivenOrder {
    /// The direction, if one scan gives the order.
    pub fn of_one_scan(self) -> Option<Direction> {
        (self.split_fields == 0).then_some(self.direction)
    }
}

/// The order that scans within the bounds give, if it is that of the sort.
pub(crate) fn given_order(bounds: &IndexBounds, sort: &SortPattern) -> Option<GivenOrder> {
    match scan_direction(bounds, sort, 0) {
        Some(direction) => Some(GivenOrder { direction, split_fields: 0 }),
        None => match split(bounds, sort) {
            Split::Into(order) => Some(order),
            Split::Impossible | Split::TooMany => None,
        },
    }
}

/// The fewest leading fields to scan value by value for the order.
pub(super) fn split(bounds: &IndexBounds, sort: &SortPattern) -> Split {
    let index = &bounds.index;
    if index.kind.answers() != Answers::ByField || index.is_clustered {
        return Split::Impossible;
    }
    let points = bounds.leading_points();
    let order = (1..=points).find_map(|split_fields| {
        let direction = scan_direction(bounds, sort, split_fields)?;
        Some(GivenOrder { direction, split_fields })
    });
    let Some(order) = order else { return Split::Impossible };
    let product = |fields: &[Intervals]| fields.iter().fold(1, |all: usize, field| all.saturating_mul(field.len()));
    match product(&bounds.fields[..order.split_fields]) {
        0 => Split::Impossible,
        scans if scans > MERGED_SCANS_MAX || product(&bounds.fields[..points]) > RANGES_MAX => Split::TooMany,
        _ => Split::Into(order),
    }
}

/// The scan direction that yields the sort's order within the bounds, if any does, while each of the first
/// `split_fields` fields has one value.
///
/// The sort's fields must be adjacent in the index. Fields bound to one value may come between and before them, and are
/// ignored in the sort. A field with arrays gives the order if all keys of a document are within the bounds: see
/// [`IndexBounds::sorts_at`]. Shortened keys give no order.
fn scan_direction(bounds: &IndexBounds, sort: &SortPattern, split_fields: usize) -> Option<Direction> {
    if sort.reads_metadata() || bounds.has_long_keys() {
        return None;
    }
    let fields = &bounds.pattern;
    let mut direction = None;
    let mut next = 0;
    let has_one_value = |position: usize| position < split_fields || bounds.is_constant_at(position);
    for (path, wanted) in sort.parts() {
        let path = path.dotted();
        let is_constant = |position: usize| has_one_value(position) && bounds.has_one_value_at(position);
        if (0..fields.len()).any(|position| fields[position].path == path && is_constant(position)) {
            continue;
        }
        while next < fields.len() && fields[next].path != path && (has_one_value(next) || active(Fault::GapsSort)) {
            next += 1;
        }
        let gives_order = |position: usize| match split_fields {
            0 => bounds.sorts_at(position),
            // A document may be in several of the scans, with other keys in each.
            _ => bounds.has_one_value_at(position),
        };
        let field = fields.get(next).filter(|field| field.path == path && gives_order(next))?;
        let needed = scan_towards(field.direction, wanted);
        if direction.is_some_and(|direction| direction != needed) && !active(Fault::DirectionsIgnored) {
            return None;
        }
        direction = Some(needed);
        next += 1;
    }
    Some(direction.unwrap_or(Direction::Forward))
}

fn scan_towards(stored: key_string::Direction, wanted: key_string::Direction) -> Direction {
    if stored == wanted { Direction::Forward } else { Direction::Backward }
}
