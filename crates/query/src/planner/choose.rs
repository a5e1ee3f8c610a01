//! Chooses among the indexes that can serve a query.
//!
//! The rules, in order: more leading fields bound to single values; a range after them; an order that avoids a sort;
//! more checks on keys alone; keys that answer the query alone; fewer fields. If the rules do not prove their choice,
//! the others become its [`rivals`], and a trial decides: see `contest`.
//!
//! Hidden indexes are never candidates ([`is_open`]). A partial index is one only if the filter implies its own
//! (`implication.rs` of `matcher`), and a sparse one only if the bounds of some field exclude null. A hint takes a
//! partial or sparse index anyway, and finds only the documents that it holds.

use super::asked_paths::asks_for;
use super::index_bounds::IndexBounds;
use super::intervals::Intervals;
use super::sort_order::{GivenOrder, given_order};
use super::steps::{Steps, conditions};
use bunko_bson::StringOrder;
use bunko_catalog::{Answers, Index};
use bunko_expression::SortPattern;
use bunko_matcher::planted::{Fault, active};
use bunko_matcher::{Expression, implies};
use std::cmp::Reverse;
use std::sync::Arc;

/// Maximum number of rivals in a trial.
const RIVALS_MAX: usize = 7;

/// Maximum number of lookups that counts as few.
const LOOKUPS_MAX: usize = 100;

/// A way to use an index.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub bounds: IndexBounds,
    /// The way to the sort's order; `None` without a sort, or if the index has another order.
    pub sorted: Option<GivenOrder>,
}

impl Candidate {
    pub fn new(
        index: &Arc<Index>,
        predicates: &[Expression],
        sort: Option<&SortPattern>,
        strings: &StringOrder,
    ) -> Self {
        Self::of_bounds(IndexBounds::derive(index, predicates, strings), sort, strings)
    }

    /// A candidate for bounds that are known.
    pub fn of_bounds(bounds: IndexBounds, sort: Option<&SortPattern>, strings: &StringOrder) -> Self {
        let has_order = bounds.index.strings == *strings || active(Fault::SortsOtherStrings);
        let sorted = sort.filter(|_| has_order).and_then(|sort| given_order(&bounds, sort));
        Self { bounds, sorted }
    }

    /// How much the bounds narrow the index; greater is better.
    pub fn reach(&self) -> impl Ord + use<> {
        reach(&self.bounds)
    }

    /// Greater is better; for the rules see the module.
    fn score(&self) -> impl Ord + use<> {
        (self.worth(), Reverse(self.bounds.fields.len()))
    }

    /// The score without the number of fields; greater is better.
    pub fn worth(&self) -> impl Ord + use<> {
        let bounds = &self.bounds;
        let points = bounds.leading_points();
        let checks = bounds.fields.iter().skip(points + 1).filter(|intervals| !intervals.is_full()).count();
        let single_points = bounds.fields.iter().take_while(|field| Intervals::is_single_point(field)).count();
        (self.reach(), self.sorted.is_some(), checks, single_points)
    }

    /// Whether no other index can be better: it looks up few keys, or every key that it reads leads to a result.
    pub fn is_proven(&self, predicates: &[Expression], sort: Option<&SortPattern>) -> bool {
        let bounds = &self.bounds;
        let points = bounds.leading_points();
        let reads_only_matches = bounds.decided.len() == predicates.len()
            && bounds.fields.iter().skip(points + 1).all(Intervals::is_full)
            && (sort.is_none() || self.sorted.is_some());
        let lookups = || bounds.fields.iter().map(Intervals::len).product::<usize>();
        reads_only_matches
            || !bounds.index.ends_with_record() && points == bounds.fields.len() && lookups() <= LOOKUPS_MAX
    }

    /// Whether it reads no more than a candidate ranked after it: it has the other candidate's bounds as a prefix of
    /// its own, and gives the order if the other one does.
    fn is_as_good_as(&self, other: &Self) -> bool {
        fn narrowed(bounds: &IndexBounds) -> impl Iterator<Item = &str> {
            let fields = bounds.pattern.iter().zip(&bounds.fields);
            fields.take_while(|(_, intervals)| !intervals.is_full()).map(|(field, _)| field.path.as_str())
        }
        let mut own = narrowed(&self.bounds);
        (self.sorted.is_some() || other.sorted.is_none())
            && narrowed(&other.bounds).all(|path| own.next() == Some(path))
    }

    /// Whether it is better than a collection scan.
    fn is_useful(&self) -> bool {
        self.bounds.is_complete() && (self.bounds.is_narrowed() || self.sorted.is_some())
    }
}

/// As [`Candidate::reach`].
pub(super) fn reach(bounds: &IndexBounds) -> impl Ord + use<> {
    let points = bounds.leading_points();
    let has_range = bounds.fields.get(points).is_some_and(|intervals| !intervals.is_full());
    (bounds.is_unique_lookup(), points, has_range)
}

/// Whether an index is a candidate for documents that satisfy all of `predicates`.
pub(super) fn is_open(index: &Index, predicates: &[Expression], strings: &StringOrder) -> bool {
    !index.is_hidden && index.kind.answers() != Answers::ByItself && takes_all(index, predicates, strings)
}

/// Whether an index's partial filter admits all documents that satisfy all of `predicates`.
pub(super) fn takes_all(index: &Index, predicates: &[Expression], strings: &StringOrder) -> bool {
    index.partial_filter.as_ref().is_none_or(|partial| implies(predicates, strings, partial.filter()))
        || active(Fault::PartialServesAll)
}

/// All useful candidates, best first; on a tie the oldest comes first.
pub(crate) fn ranked(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    sort: Option<&SortPattern>,
    strings: &StringOrder,
    steps: &Steps<'_>,
) -> Vec<Candidate> {
    let mut ranked: Vec<_> = useful(indexes, predicates, sort, strings, steps).collect();
    if ranked.len() > 1 {
        ranked.sort_by_cached_key(|candidate| Reverse(candidate.score()));
    }
    ranked
}

/// Whether an index may be useful: the filter or the sort asks for its first field. This drops most of many indexes
/// early.
fn may_serve(index: &Index, predicates: &[Expression], sort: Option<&SortPattern>) -> bool {
    let first = index.fields.first().map_or("", |field| field.path.as_str());
    matches!(index.kind.answers(), Answers::ByPath { .. })
        || predicates.iter().any(|predicate| asks_for(predicate, first))
        || sort.is_some_and(|sort| sort.parts().any(|(path, _)| path.dotted() == first))
}

fn useful<'a>(
    indexes: &'a [Arc<Index>],
    predicates: &'a [Expression],
    sort: Option<&'a SortPattern>,
    strings: &'a StringOrder,
    steps: &'a Steps<'_>,
) -> impl Iterator<Item = Candidate> + 'a {
    let compared: usize = predicates.iter().map(conditions).sum();
    indexes
        .iter()
        .filter(move |index| {
            steps.look(compared)
                && may_serve(index, predicates, sort)
                && steps.take(index, predicates)
                && is_open(index, predicates, strings)
        })
        .map(move |index| Candidate::new(index, predicates, sort, strings))
        .filter(Candidate::is_useful)
}

/// Maximum number of indexes without a condition on their first field that are compared.
const UNLED_MAX: usize = 4;

/// Candidates without bounds on their first field that have bounds on a later one.
pub(crate) fn unled<'a>(
    indexes: &'a [Arc<Index>],
    predicates: &'a [Expression],
    strings: &'a StringOrder,
    steps: &'a Steps<'_>,
) -> impl Iterator<Item = Candidate> + 'a {
    let asks_later = |index: &Index| {
        let later = index.fields.iter().skip(1);
        later.into_iter().any(|field| predicates.iter().any(|predicate| asks_for(predicate, &field.path)))
    };
    let is_bounded = |candidate: &Candidate| {
        let bounds = &candidate.bounds;
        bounds.is_complete() && !bounds.has_long_keys() && bounds.fields.iter().any(|field| !field.is_full())
    };
    indexes
        .iter()
        .filter(move |index| index.kind.answers() == Answers::ByField && steps.look_at(index) && asks_later(index))
        .filter(move |index| steps.take(index, predicates) && is_open(index, predicates, strings))
        .map(move |index| Candidate::new(index, predicates, None, strings))
        .filter(is_bounded)
        .take(UNLED_MAX)
}

/// The candidates that may be better than `best` and than all ranked before them.
pub(crate) fn rivals(
    best: &Candidate,
    predicates: &[Expression],
    sort: Option<&SortPattern>,
    others: impl Iterator<Item = Candidate>,
) -> Vec<Candidate> {
    if best.is_proven(predicates, sort) {
        return Vec::new();
    }
    let mut rivals: Vec<Candidate> = Vec::new();
    for other in others.filter(|other| !best.is_as_good_as(other)) {
        if rivals.len() < RIVALS_MAX && !rivals.iter().any(|rival| rival.is_as_good_as(&other)) {
            rivals.push(other);
        }
    }
    rivals
}
