//! `$or` over indexes: each branch scans its best index, and each record counts once. If each branch has an index that
//! gives the order of the sort, the scans are merged in that order. Branches that read the same keys are one scan.

use super::choose::{self, Candidate};
use super::index_bounds::IndexBounds;
use super::sort_order::{GivenOrder, MERGED_SCANS_MAX};
use super::steps::Steps;
use super::{Order, predicates_of};
use bunko_bson::StringOrder;
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_expression::SortPattern;
use bunko_matcher::Expression;
use bunko_matcher::planted::{Fault, active};
use bunko_store::Direction;
use std::sync::Arc;

/// Chooses an index for the conditions of a branch.
pub(super) type Choose<'c> = dyn FnMut(&[Arc<Index>], &[Expression]) -> Result<Option<Candidate>> + 'c;

/// Scans that together find the matches of an `$or`.
pub(crate) struct OrBounds {
    pub branches: Vec<(IndexBounds, Direction)>,
    /// Whether each scan gives the order of the query's sort.
    pub order: Order,
    /// Whether every key found means that the `$or` matches.
    pub is_decided: bool,
}

/// Scans for an `$or` with these alternatives; `None` unless an index narrows each of them.
/// # Errors
/// As `choose`.
pub(super) fn branches(
    indexes: &[Arc<Index>],
    alternatives: &[Expression],
    choose: &mut Choose<'_>,
) -> Result<Option<OrBounds>> {
    let mut branches = Vec::with_capacity(alternatives.len());
    let mut is_decided = true;
    for alternative in alternatives {
        let predicates = predicates_of(alternative);
        let Some(best) = choose(indexes, predicates)? else { return Ok(None) };
        is_decided &= best.bounds.decided.len() == predicates.len() || active(Fault::BranchesDecide);
        add(&mut branches, best.bounds, Direction::Forward);
    }
    Ok(Some(OrBounds { branches, order: Order::Any, is_decided }))
}

/// Branches that a new one is compared with.
const COMPARED_MAX: usize = 32;

/// Adds a scan, unless an earlier branch reads the same keys: alternatives often have a condition in common.
fn add(branches: &mut Vec<(IndexBounds, Direction)>, bounds: IndexBounds, direction: Direction) {
    let reads_the_same =
        |earlier: &(IndexBounds, Direction)| earlier.1 == direction && earlier.0.reads_the_same_keys(&bounds);
    let compared = branches.len().min(COMPARED_MAX);
    match branches[..compared].iter_mut().find(|earlier| reads_the_same(earlier)) {
        // Its checks on keys are those of its own alternative.
        Some(_) if active(Fault::ChecksOfOtherBranch) => {}
        Some((earlier, _)) => earlier.on_keys.clear(),
        None => branches.push((bounds, direction)),
    }
}

/// As [`branches`], if the narrowest index of each alternative also gives the order of the sort.
pub(super) fn ordered_branches(
    indexes: &[Arc<Index>],
    alternatives: &[Expression],
    sort: &SortPattern,
    strings: &StringOrder,
    steps: &Steps,
) -> Option<OrBounds> {
    let mut branches = Vec::with_capacity(alternatives.len());
    let mut is_decided = true;
    for alternative in alternatives {
        let predicates = predicates_of(alternative);
        let best = choose::best(indexes, predicates, Some(sort), strings, steps)?;
        let GivenOrder { direction, split_fields } = best.sorted?;
        if !best.bounds.is_narrowed() || best.bounds.index.is_clustered {
            return None;
        }
        is_decided &= best.bounds.decided.len() == predicates.len();
        best.bounds.by_value(split_fields).into_iter().for_each(|bounds| add(&mut branches, bounds, direction));
        if branches.len() > MERGED_SCANS_MAX {
            return None;
        }
    }
    Some(OrBounds { branches, order: Order::AsAsked, is_decided })
}
