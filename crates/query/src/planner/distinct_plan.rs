//! `distinct`, and a `$group` that needs one document per group, by an index: the scan reads the first key of each
//! value and skips the others.

use super::choose::{Candidate, is_open};
use super::index_bounds::{IndexBounds, names_array_index};
use super::sort_order::GivenOrder;
use crate::find_query::{Distinct, DistinctOf};
use bunko_bson::StringOrder;
use bunko_catalog::{Answers, Index, KeyForm};
use bunko_expression::SortPattern;
use bunko_matcher::Expression;
use bunko_matcher::planted::{Fault, active};
use bunko_store::Direction;
use std::cmp::Reverse;
use std::sync::Arc;

/// Bounds, and the position of the index field whose values the scan skips between.
pub(crate) struct DistinctBounds {
    pub candidate: Candidate,
    pub position: usize,
    pub direction: Direction,
}

/// The best index for the distinct values in documents that satisfy all of `predicates`, if keys decide the predicates;
/// `None` if no index can. On a tie the oldest wins.
pub(crate) fn best(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    distinct: &Distinct,
    sort: Option<&SortPattern>,
    strings: &StringOrder,
) -> Option<DistinctBounds> {
    indexes
        .iter()
        .rev()
        .filter(|index| is_open(index, predicates, strings) && index.strings == *strings && !index.is_clustered)
        .filter_map(|index| {
            let candidate = Candidate::new(index, predicates, sort, strings);
            let sorted = candidate.sorted.and_then(GivenOrder::of_one_scan);
            let position = position(&candidate.bounds, predicates, &distinct.path)?;
            let serves = match distinct.of {
                DistinctOf::Elements => true,
                DistinctOf::Groups => serves_groups(&candidate.bounds, position),
                // The scan returns the first key of each value, so it goes in the sort's order, or against it.
                DistinctOf::FirstOfGroups | DistinctOf::LastOfGroups => {
                    serves_groups(&candidate.bounds, position) && (sorted.is_some() || active(Fault::FirstInAnyOrder))
                }
            };
            if !serves {
                return None;
            }
            let direction = match (distinct.of, sorted) {
                (DistinctOf::FirstOfGroups, Some(sorted)) => sorted,
                (DistinctOf::LastOfGroups, Some(Direction::Forward)) => Direction::Backward,
                _ => Direction::Forward,
            };
            Some(DistinctBounds { candidate, position, direction })
        })
        .max_by_key(|found| {
            let candidate = &found.candidate;
            (candidate.reach(), Reverse(found.position), Reverse(candidate.bounds.fields.len()))
        })
}

/// Whether each document in the bounds has exactly one key, which names its group.
fn serves_groups(bounds: &IndexBounds, position: usize) -> bool {
    let is_single = bounds.multikey.is_empty() && !bounds.spans_paths && !bounds.is_multikey_at(position);
    bounds.is_complete() && (is_single || active(Fault::ArraysGrouped))
}

fn position(bounds: &IndexBounds, predicates: &[Expression], path: &str) -> Option<usize> {
    let index = &bounds.index;
    if bounds.has_long_keys() {
        return None;
    }
    if index.kind.answers() != Answers::ByField || bounds.decided.len() != predicates.len() || names_array_index(path) {
        return None;
    }
    let position = index.fields.iter().position(|field| field.path == path && field.form == KeyForm::Value)?;
    if predicates.is_empty() {
        // A document that a sparse index omits has no value there.
        return (position == 0).then_some(0);
    }
    // A document that matches by one array element has keys of its other elements out of bounds, and these values count
    // too.
    let is_single = !bounds.is_multikey_at(position) || active(Fault::ElementsDistinct);
    (bounds.is_narrowed() && bounds.is_complete() && is_single).then_some(position)
}
