//! The candidates of one query, and the preference among them.

use super::choose::{self, Candidate};
use super::or_plan::{BranchSearch, OrBounds, TRIED_MAX};
use super::{AccessPath, Builder, LARGE_FILTER_BYTES, Order, near_plan};
use crate::plan::{Asked, Chosen};
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
        let (predicates, strings) = (self.query.filter.root().conjuncts(), &self.query.scope.strings);
        choose::ranked(indexes, predicates, self.query.sort.as_ref(), strings, &self.steps)
    }

    /// The scan of chosen indexes; `None` if they do not serve the query.
    /// # Errors
    /// Errors of the operation.
    pub(super) fn by_chosen(
        &mut self,
        indexes: &[Arc<Index>],
        Asked { chosen, union }: Asked<'_>,
    ) -> Result<Option<AccessPath>> {
        let candidate = |index: KeyspaceId| {
            let own = indexes.iter().position(|own| own.keyspace == index)?;
            self.ranked(&indexes[own..=own]).pop()
        };
        match chosen {
            Chosen::One(index) => Ok(candidate(index).map(|candidate| self.index_scan(candidate))),
            Chosen::Both(one, other) => {
                let (Some(one), Some(other)) = (candidate(one), candidate(other)) else { return Ok(None) };
                let can_be_intersected = |candidate: &Candidate| candidate.bounds.can_be_intersected();
                let can_be = can_be_intersected(&one) && can_be_intersected(&other);
                Ok(can_be.then(|| self.intersection(one.bounds, other.bounds)))
            }
            Chosen::Region(index) => {
                let own: Vec<_> = indexes.iter().filter(|own| own.keyspace == index).cloned().collect();
                let (predicates, strings) = (self.query.filter.root().conjuncts(), &self.query.scope.strings);
                let region = near_plan::region(&own, predicates, strings, &self.steps);
                Ok(region.map(|region| self.geo_scan(region)))
            }
            Chosen::Branches { .. } if let Some(union) = union.filter(|union| union.holds(indexes)) => {
                Ok(Some(self.or_scan(union.clone(), Some(chosen))))
            }
            Chosen::Branches { position, order } => {
                let predicates = self.query.filter.root().conjuncts();
                let sort = self.query.sort.as_ref().filter(|_| order == Order::AsAsked);
                // An index that became ready after the query's snapshot was taken may lack keys of it.
                let known: Option<Vec<_>> =
                    union.map(|union| indexes.iter().filter(|index| union.reads(index)).cloned().collect());
                let found = self.branches_of(known.as_deref().unwrap_or(indexes), (predicates, position), sort)?;
                Ok(found.map(|found| self.or_scan(found, Some(chosen))))
            }
        }
    }

    /// Scans for the alternatives of the `$or` at `position` of `predicates`, each in the order of `sort`, if there is one.
    fn branches_of(
        &self,
        indexes: &[Arc<Index>],
        (predicates, position): (&[Expression], usize),
        sort: Option<&SortPattern>,
    ) -> Result<Option<OrBounds>> {
        let (strings, steps) = (&self.query.scope.strings, &self.steps);
        let search = BranchSearch::new(indexes, sort, strings, steps);
        search.of(predicates, position, &mut self.branch_chooser())
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
    ) -> Result<Option<OrBounds>> {
        Ok(self.unions(indexes, predicates, sort)?.into_iter().next().map(|(_, found)| found))
    }

    /// The ways to find the matches by scans for the alternatives of one `$or`, each with the position of its `$or` among
    /// the conditions. Unions that give the order of the sort come first.
    /// # Errors
    /// Errors of the operation.
    pub(super) fn unions(
        &self,
        indexes: &[Arc<Index>],
        predicates: &[Expression],
        sort: Option<&SortPattern>,
    ) -> Result<Vec<(usize, OrBounds)>> {
        let (mut ordered, mut others) = (Vec::new(), Vec::new());
        let is_large = self.is_large();
        let is_or = |position: &usize| matches!(predicates[*position], Expression::Or(_));
        for position in (0..predicates.len()).filter(is_or).take(TRIED_MAX) {
            if let Some(sort) = sort {
                let found = self.branches_of(indexes, (predicates, position), Some(sort))?;
                ordered.extend(found.map(|found| (position, found)));
            }
            // The memory for planning a large filter is that of one union.
            if is_large && !ordered.is_empty() {
                break;
            }
            let found = self.branches_of(indexes, (predicates, position), None)?;
            others.extend(found.map(|found| (position, found)));
            if is_large && !others.is_empty() {
                break;
            }
        }
        ordered.append(&mut others);
        Ok(ordered)
    }

    /// Whether the filter is so large that the scans of its branches are not kept twice.
    pub(super) fn is_large(&self) -> bool {
        self.query.filter_document.as_ref().len_bytes() > LARGE_FILTER_BYTES
    }

    /// The candidate that the rules prefer. It contends with its rivals, unless the rules prove it the best.
    pub(super) fn best(&mut self, ranked: Vec<Candidate>) -> Option<Candidate> {
        let mut ranked = self.covering_first(ranked).into_iter();
        let best = ranked.next()?;
        if best.bounds.is_narrowed() && !self.query.reads_keys() {
            let predicates = self.query.filter.root().conjuncts();
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
        let predicates = self.query.filter.root().conjuncts();
        let residual = Residual::without(&candidate.bounds.decided, predicates.len());
        let is_one_scan = candidate.sorted.is_none_or(|sorted| sorted.of_one_scan().is_some());
        let order = if candidate.sorted.is_some() { Order::AsAsked } else { Order::Any };
        is_one_scan && self.covered(&candidate.bounds, &residual, order).is_some()
    }
}
