//! The candidates of one query, and the preference among them.

use super::choose::{self, Candidate};
use super::{AccessPath, Builder, Chosen, Order, or_plan, predicates_of};
use crate::stages::Residual;
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_expression::SortPattern;
use bunko_matcher::Expression;
use bunko_store::KeyspaceId;
use std::sync::Arc;

impl Builder<'_> {
    /// All useful candidates, best first.
    pub(super) fn ranked(&self, indexes: &[Arc<Index>]) -> Vec<Candidate> {
        let (predicates, strings) = (predicates_of(self.query.filter.root()), &self.query.scope.strings);
        choose::ranked(indexes, predicates, self.query.sort.as_ref(), strings, &self.steps)
    }

    /// The scan of chosen indexes; `None` if they do not serve the query.
    pub(super) fn by_chosen(&mut self, indexes: &[Arc<Index>], chosen: Chosen) -> Option<AccessPath> {
        let candidate = |index: KeyspaceId| {
            let own = indexes.iter().position(|own| own.keyspace == index)?;
            self.ranked(&indexes[own..=own]).pop()
        };
        match chosen {
            Chosen::One(index) => candidate(index).map(|candidate| self.index_scan(candidate)),
            Chosen::Both(one, other) => {
                let (one, other) = (candidate(one)?.bounds, candidate(other)?.bounds);
                let are_ordered = one.are_in_record_order() && other.are_in_record_order();
                are_ordered.then(|| self.intersection(one, other))
            }
        }
    }

    /// Scans for the alternatives of an `$or` among the conditions, in the order of the sort if each alternative has an
    /// index that gives it.
    /// # Errors
    /// Errors of the operation.
    pub(super) fn alternatives(
        &self,
        indexes: &[Arc<Index>],
        predicates: &[Expression],
        sort: Option<&SortPattern>,
    ) -> Result<Option<or_plan::OrBounds>> {
        let strings = &self.query.scope.strings;
        for predicate in predicates {
            let Expression::Or(alternatives) = predicate else { continue };
            let ordered =
                sort.and_then(|sort| or_plan::ordered_branches(indexes, alternatives, sort, strings, &self.steps));
            let found = match ordered {
                None => or_plan::branches(indexes, alternatives, &mut self.branch_chooser())?,
                ordered => ordered,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The candidate that the rules prefer. It contends with its rivals, unless the rules prove it the best.
    pub(super) fn best(&mut self, ranked: Vec<Candidate>) -> Option<Candidate> {
        let mut ranked = self.covering_first(ranked).into_iter();
        let best = ranked.next()?;
        if best.bounds.is_narrowed() && !self.query.reads_keys() {
            let predicates = predicates_of(self.query.filter.root());
            let rivals = choose::rivals(&best, predicates, self.query.sort.as_ref(), ranked);
            self.contenders = self.contenders_of(&best, rivals);
        }
        Some(best)
    }

    /// Reorders candidates: among those as good as the best, one whose keys answer the query alone comes first.
    fn covering_first(&self, mut ranked: Vec<Candidate>) -> Vec<Candidate> {
        if ranked.len() > 1 && self.query.needed_alone().is_some() {
            let best = ranked[0].worth();
            let as_good = ranked.iter().take_while(|candidate| candidate.worth() == best);
            if let Some(covering) = as_good.into_iter().position(|candidate| self.is_covering(candidate)) {
                ranked[..=covering].rotate_right(1);
            }
        }
        ranked
    }

    pub(super) fn is_covering(&self, candidate: &Candidate) -> bool {
        let predicates = predicates_of(self.query.filter.root());
        let residual = Residual::without(&candidate.bounds.decided, predicates.len());
        let is_one_scan = candidate.sorted.is_none_or(|sorted| sorted.of_one_scan().is_some());
        let order = if candidate.sorted.is_some() { Order::AsAsked } else { Order::Any };
        is_one_scan && self.covered(&candidate.bounds, &residual, order).is_some()
    }
}
