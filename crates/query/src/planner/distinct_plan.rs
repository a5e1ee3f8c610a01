//! `distinct`, and a `$group` that needs one document per group, by an index: the scan reads the first key of each
//! value and skips the others. A `$group` of all documents by `$min` or `$max` needs one end of an index.

use super::choose::{Candidate, is_open};
use super::index_bounds::{IndexBounds, names_array_index};
use super::sort_order::GivenOrder;
use super::steps::Steps;
use crate::find_query::{Distinct, DistinctOf};
use bunko_bson::{DocumentBuf, StringOrder, key_string};
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
    /// Position of the field whose value must not be null in the document of a group, if one must not be.
    pub valued: Option<usize>,
    pub direction: Direction,
}

/// The values to find, and the order of their documents.
#[derive(Clone, Copy)]
pub(super) struct Asked<'q> {
    pub distinct: &'q Distinct,
    pub sort: Option<&'q SortPattern>,
}

/// The best index for the distinct values in documents that satisfy all of `predicates`, if keys decide the predicates;
/// `None` if no index can. On a tie the oldest wins.
pub(crate) fn best(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    Asked { distinct, sort }: Asked<'_>,
    strings: &StringOrder,
    steps: &Steps<'_>,
) -> Option<DistinctBounds> {
    indexes
        .iter()
        .rev()
        .filter(|index| is_open(index, predicates, strings) && index.strings == *strings && !index.is_clustered)
        .filter(|index| index.fields.iter().any(|field| field.path == *distinct.path))
        .filter(|index| steps.take(index, predicates))
        .filter_map(|index| {
            let orders = orders(distinct, sort)?;
            orders.iter().find_map(|sort| serving(index, predicates, Asked { distinct, sort: sort.as_ref() }, strings))
        })
        .max_by_key(|found| {
            let candidate = &found.candidate;
            (candidate.reach(), Reverse(found.position), Reverse(candidate.bounds.fields.len()))
        })
}

/// The orders of a scan that finds the documents asked for: that of the query, or one in which the values of the groups
/// come one after the other, and their documents in the order of a group. `None` if none is known.
fn orders(distinct: &Distinct, sort: Option<&SortPattern>) -> Option<Vec<Option<SortPattern>>> {
    let Some(order) = &distinct.order else { return Some(vec![sort.cloned()]) };
    if sort.is_some() || order.reads_metadata() {
        return None;
    }
    let pattern = |first: i32| {
        let within = order.parts().map(|(path, direction)| (path.dotted(), direction));
        let all = within.filter(|(path, _)| **path != *distinct.path).fold(
            DocumentBuf::new().with(&distinct.path, first),
            |all, (path, direction)| {
                all.with(&path, if direction == key_string::Direction::Ascending { 1_i32 } else { -1 })
            },
        );
        SortPattern::parse(all.as_ref()).ok().map(Some)
    };
    [1, -1].into_iter().map(pattern).collect()
}

/// The scan of an index, if it finds the documents asked for.
fn serving(
    index: &Arc<Index>,
    predicates: &[Expression],
    Asked { distinct, sort }: Asked<'_>,
    strings: &StringOrder,
) -> Option<DistinctBounds> {
    let candidate = Candidate::new(index, predicates, sort, strings);
    let sorted = candidate.sorted.and_then(GivenOrder::of_one_scan);
    let bounds = &candidate.bounds;
    let position = position(bounds, predicates, &distinct.path)?;
    let names_groups = serves_groups(bounds, position);
    let serves = match distinct.of {
        DistinctOf::Elements => true,
        DistinctOf::Groups => names_groups,
        // The scan returns the first key of each value, so it goes in the sort's order, or against it.
        DistinctOf::FirstOfGroups | DistinctOf::LastOfGroups | DistinctOf::FirstWithValue => {
            let has_one_form = distinct.order.is_none() || has_one_form(bounds, position);
            names_groups && has_one_form && (sorted.is_some() || active(Fault::FirstInAnyOrder))
        }
        DistinctOf::Least | DistinctOf::Greatest => {
            let is_constant = |before: usize| bounds.is_constant_at(before);
            names_groups && has_one_form(bounds, position) && (0..position).all(is_constant)
        }
    };
    if !serves {
        return None;
    }
    let valued = match (distinct.of, &distinct.order) {
        (DistinctOf::FirstWithValue, Some(order)) => Some(valued(bounds, position, order)?),
        _ => None,
    };
    let ascends = index.fields[position].direction == key_string::Direction::Ascending;
    let direction = match (distinct.of, sorted) {
        (DistinctOf::Least, _) if !ascends => Direction::Backward,
        (DistinctOf::Greatest, _) if ascends => Direction::Backward,
        (DistinctOf::FirstOfGroups | DistinctOf::FirstWithValue, Some(sorted)) => sorted,
        (DistinctOf::LastOfGroups, Some(Direction::Forward)) => Direction::Backward,
        _ => Direction::Forward,
    };
    Some(DistinctBounds { candidate, position, valued, direction })
}

/// The position of the only field of an order, if it comes after that of the groups.
fn valued(bounds: &IndexBounds, group: usize, order: &SortPattern) -> Option<usize> {
    let (path, _) = order.parts().next()?;
    let path = path.dotted();
    let position = bounds.pattern.iter().position(|field| field.path == path)?;
    // An expression knows no positions in arrays.
    (position > group && !names_array_index(&path) && has_one_form(bounds, position)).then_some(position)
}

/// Whether each document in the bounds has exactly one key, which names its group.
fn serves_groups(bounds: &IndexBounds, position: usize) -> bool {
    let is_single = bounds.multikey.is_empty() && !bounds.spans_paths && !bounds.is_multikey_at(position);
    bounds.is_complete() && (is_single || active(Fault::ArraysGrouped))
}

/// Whether equal values of a field have one type, so that any of them may stand for all. A group takes the first of
/// equal values in the collection.
fn has_one_form(bounds: &IndexBounds, position: usize) -> bool {
    let index = &bounds.index;
    let (path, kinds) = (&bounds.pattern[position].path, bounds.fields[position].kinds().without_null());
    let is_exact = || bounds.multikey.types().are_exact_at(position, path, kinds);
    index.tells_types && index.strings.is_bytes() && (is_exact() || active(Fault::GroupsHaveOneForm))
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
