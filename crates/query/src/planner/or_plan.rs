//! `$or` over indexes: each branch scans its best index, and each record counts once.

use super::choose;
use super::index_bounds::IndexBounds;
use super::predicates_of;
use bunko_bson::StringOrder;
use bunko_catalog::Index;
use bunko_matcher::Expression;
use std::sync::Arc;

/// Scans that together find the matches of an `$or`.
pub(crate) struct OrBounds {
    pub branches: Vec<IndexBounds>,
    /// Whether every key found means that the `$or` matches.
    pub is_decided: bool,
}

/// Scans for the first `$or` among the predicates that indexes can serve.
pub(crate) fn of_predicates(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    strings: &StringOrder,
) -> Option<OrBounds> {
    predicates.iter().find_map(|predicate| match predicate {
        Expression::Or(alternatives) => branches(indexes, alternatives, strings),
        _ => None,
    })
}

/// Scans for an `$or` with these alternatives; `None` unless an index narrows each of them.
pub(crate) fn branches(indexes: &[Arc<Index>], alternatives: &[Expression], strings: &StringOrder) -> Option<OrBounds> {
    let mut branches = Vec::with_capacity(alternatives.len());
    let mut is_decided = true;
    for alternative in alternatives {
        let predicates = predicates_of(alternative);
        let best = choose::best(indexes, predicates, None, strings)?;
        is_decided &= best.bounds.decided.len() == predicates.len();
        branches.push(best.bounds);
    }
    Some(OrBounds { branches, is_decided })
}
