//! `$or` over indexes: each branch scans its best index, and each record counts once.

use super::choose::{self, Candidate};
use super::index_bounds::IndexBounds;
use super::predicates_of;
use bunko_bson::StringOrder;
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_matcher::Expression;
use std::sync::Arc;

/// Chooses one of the candidates for the conditions of a branch, best first by the rules.
pub(crate) type Choose<'c> = dyn FnMut(Vec<Candidate>, &[Expression]) -> Result<Option<Candidate>> + 'c;

/// Scans that together find the matches of an `$or`.
pub(crate) struct OrBounds {
    pub branches: Vec<IndexBounds>,
    /// Whether every key found means that the `$or` matches.
    pub is_decided: bool,
}

/// Scans for the first `$or` among the predicates that indexes can serve.
/// # Errors
/// As `choose`.
pub(crate) fn of_predicates(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    strings: &StringOrder,
    choose: &mut Choose<'_>,
) -> Result<Option<OrBounds>> {
    for predicate in predicates {
        if let Expression::Or(alternatives) = predicate
            && let Some(found) = branches(indexes, alternatives, strings, choose)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Scans for an `$or` with these alternatives; `None` unless an index narrows each of them.
/// # Errors
/// As `choose`.
pub(crate) fn branches(
    indexes: &[Arc<Index>],
    alternatives: &[Expression],
    strings: &StringOrder,
    choose: &mut Choose<'_>,
) -> Result<Option<OrBounds>> {
    let mut branches = Vec::with_capacity(alternatives.len());
    let mut is_decided = true;
    for alternative in alternatives {
        let predicates = predicates_of(alternative);
        let Some(best) = choose(choose::ranked(indexes, predicates, None, strings), predicates)? else {
            return Ok(None);
        };
        is_decided &= best.bounds.decided.len() == predicates.len();
        branches.push(best.bounds);
    }
    Ok(Some(OrBounds { branches, is_decided }))
}
