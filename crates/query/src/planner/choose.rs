//! Choosing one of the indexes that can serve a query.
//!
//! By rules, not by trial: more leading fields bound to single values win, then a range behind them, then an order
//! that spares a sort, then more checks on the keys alone, then fewer fields. MongoDB runs the candidates against each
//! other for a while instead and remembers the winner; where data is skewed, its choice may be better than this one.

use super::index_bounds::IndexBounds;
use super::intervals::Intervals;
use super::sort_order::scan_direction;
use bunko_bson::StringOrder;
use bunko_catalog::{Answers, Index};
use bunko_expression::SortPattern;
use bunko_matcher::{Expression, implies};
use bunko_store::Direction;
use std::cmp::Reverse;
use std::sync::Arc;

/// A way to use an index.
pub(crate) struct Candidate {
    pub bounds: IndexBounds,
    /// The direction that yields the sort's order; `None` where no sort is asked for or the order is another.
    pub sorted: Option<Direction>,
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

    /// A way to use an index within bounds that are known.
    pub fn of_bounds(bounds: IndexBounds, sort: Option<&SortPattern>, strings: &StringOrder) -> Self {
        let sorted = sort.filter(|_| bounds.index.strings == *strings).and_then(|sort| scan_direction(&bounds, sort));
        Self { bounds, sorted }
    }

    /// How far the bounds narrow an index down; greater is better.
    pub fn reach(&self) -> impl Ord + use<> {
        let points = self.bounds.leading_points();
        let has_range = self.bounds.fields.get(points).is_some_and(|intervals| !intervals.is_full());
        (self.bounds.is_unique_lookup(), points, has_range)
    }

    /// Greater is better; see the module's text.
    fn score(&self) -> impl Ord + use<> {
        let bounds = &self.bounds;
        let points = bounds.leading_points();
        let checks = bounds.fields.iter().skip(points + 1).filter(|intervals| !intervals.is_full()).count();
        let single_points = bounds.fields.iter().take_while(|field| Intervals::is_single_point(field)).count();
        (self.reach(), self.sorted.is_some(), checks, single_points, Reverse(bounds.fields.len()))
    }

    /// Whether it is better than looking at every document.
    fn is_useful(&self) -> bool {
        self.bounds.is_complete() && (self.bounds.is_narrowed() || self.sorted.is_some())
    }
}

/// Whether an index may be considered for documents that satisfy all of `predicates`.
pub(super) fn is_open(index: &Index, predicates: &[Expression]) -> bool {
    !index.is_hidden
        && index.kind.answers() != Answers::ByItself
        && index.partial_filter.as_ref().is_none_or(|partial| implies(predicates, partial.expression()))
}

/// The best index for documents that satisfy all of `predicates`; `None` where none helps. Of equals the oldest wins.
pub(crate) fn best(
    indexes: &[Arc<Index>],
    predicates: &[Expression],
    sort: Option<&SortPattern>,
    strings: &StringOrder,
) -> Option<Candidate> {
    indexes
        .iter()
        .rev()
        .filter(|index| is_open(index, predicates))
        .map(|index| Candidate::new(index, predicates, sort, strings))
        .filter(Candidate::is_useful)
        .max_by(|a, b| a.score().cmp(&b.score()))
}
