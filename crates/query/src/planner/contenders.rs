//! The candidates between which rules leave a choice.

use super::branch_scan::BranchScan;
use super::or_plan::{self, OrBounds};
use super::sort_order::Order;
use super::{Builder, Candidate, choose, near_plan};
use crate::estimates::{self, Choice, Demand};
use crate::plan::{Chosen, Contender};
use crate::stages::Residual;
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_matcher::Expression;
use bunko_store::Direction;
use std::sync::Arc;

/// Maximum number of branches of an `$or` whose index is chosen by estimates.
const BRANCHES_MAX: usize = 16;

/// Maximum number of branches whose scans are estimated; they stand for the others.
const ESTIMATED_MAX: usize = 64;

/// Maximum number of geospatial indexes that contend.
const REGIONS_MAX: usize = 3;

impl Builder<'_> {
    /// The candidates from which estimates or a trial choose the query's index; none if the rules alone decide for
    /// `best`.
    pub(super) fn contenders_of(&self, best: &Candidate, rivals: Vec<Candidate>) -> Vec<Contender> {
        if rivals.is_empty() {
            return Vec::new();
        }
        let all = std::iter::once(best.clone()).chain(rivals);
        all.map(|candidate| self.contender(candidate)).collect()
    }

    fn contender(&self, candidate: Candidate) -> Contender {
        let residual = Residual::without(&candidate.bounds.decided, self.query.filter.root().conjuncts().len());
        let reads_documents = self.keys_suffice(&residual).is_none() && !self.is_covering(&candidate);
        Contender {
            chosen: Chosen::One(candidate.bounds.index.keyspace),
            decides_all: residual.decided_by_keys().is_some(),
            reads_documents,
            is_sorted: candidate.sorted.is_some(),
            scans: vec![BranchScan::Keys(candidate.bounds, Direction::Forward)],
            scans_count: 1,
            union: None,
        }
    }

    fn contender_of_union(&self, position: usize, union: &Arc<OrBounds>) -> Contender {
        let residual = or_plan::residual(union);
        Contender {
            chosen: Chosen::Branches { position, order: union.order },
            decides_all: residual.decided_by_keys().is_some(),
            reads_documents: self.keys_suffice(&residual).is_none(),
            is_sorted: union.order == Order::AsAsked,
            scans: union
                .branches
                .iter()
                .step_by(union.branches.len().div_ceil(ESTIMATED_MAX).max(1))
                .cloned()
                .collect(),
            scans_count: union.branches.len(),
            union: (!self.is_large()).then(|| Arc::clone(union)),
        }
    }

    fn contender_of_region(region: BranchScan) -> Contender {
        Contender {
            chosen: Chosen::Region(region.index().keyspace),
            decides_all: false,
            reads_documents: true,
            is_sorted: false,
            scans: vec![region],
            scans_count: 1,
            union: None,
        }
    }

    /// Lets the geospatial indexes of a region among the conditions contend with `best` and with the branches of `$or`s.
    /// Returns the scan of the region if no other index narrows the search.
    pub(super) fn region_before(
        &mut self,
        indexes: &[Arc<Index>],
        best: Option<&Candidate>,
        union: Option<&(Chosen, Arc<OrBounds>)>,
    ) -> Option<BranchScan> {
        let (predicates, sort) = (self.query.filter.root().conjuncts(), self.query.sort.as_ref());
        let narrowed = best.filter(|best| best.bounds.is_narrowed());
        if narrowed.is_some_and(|best| best.is_proven(predicates, sort)) {
            return None;
        }
        let mut regions = near_plan::regions(indexes, predicates, &self.query.scope.strings, &self.steps);
        regions.truncate(REGIONS_MAX);
        if regions.is_empty() {
            return None;
        }
        if !self.query.reads_keys() {
            let mut others = std::mem::take(&mut self.contenders);
            if others.is_empty() {
                others.extend(match union {
                    Some((Chosen::Branches { position, .. }, union)) => Some(self.contender_of_union(*position, union)),
                    // An index that only gives the order is read whole, which pays only if a limit ends it early.
                    _ if narrowed.is_none() && self.query.wanted().is_none() => None,
                    _ => best.map(|best| self.contender(best.clone())),
                });
            }
            // A region alone contends with nothing, and its keys need no copy.
            if regions.len() + others.len() > 1 {
                let place = if narrowed.is_none() { 0 } else { others.len() };
                others.splice(place..place, regions.iter().cloned().map(Self::contender_of_region));
                self.contenders = others;
            }
        }
        narrowed.is_none().then(|| regions.swap_remove(0))
    }

    /// Lets the scans for the branches of each `$or` among the conditions contend with `best` and its rivals. Returns the
    /// scans that the rules prefer to `best`: those whose bounds are narrower in each branch.
    /// # Errors
    /// Errors of the operation.
    pub(super) fn union_before(
        &mut self,
        indexes: &[Arc<Index>],
        best: Option<&Candidate>,
    ) -> Result<Option<(Chosen, Arc<OrBounds>)>> {
        let (predicates, sort) = (self.query.filter.root().conjuncts(), self.query.sort.as_ref());
        let narrowed = best.filter(|best| best.bounds.is_narrowed());
        // A trial would decide which keys are returned.
        if narrowed.is_some_and(|best| best.is_proven(predicates, sort) || self.query.reads_keys()) {
            return Ok(None);
        }
        let mut unions = self.unions(indexes, predicates, sort)?;
        unions.retain(|(_, union)| !narrowed.is_some_and(|best| union.finds_all_of(&best.bounds)));
        let mut unions: Vec<_> = unions.into_iter().map(|(position, union)| (position, Arc::new(union))).collect();
        let Some((_, first)) = unions.first() else { return Ok(None) };
        let is_first = narrowed.is_none_or(|best| first.is_narrower_than(best));
        if !self.query.reads_keys() && !self.steps.are_used_up() {
            let mut others = std::mem::take(&mut self.contenders);
            // An index that only gives the order is read whole, which pays only if a limit ends it early.
            let contends = narrowed.is_some() || self.query.wanted().is_some();
            if others.is_empty() && contends {
                others.extend(best.map(|best| self.contender(best.clone())));
            }
            // A union alone contends with nothing, and its scans need no copy.
            if unions.len() + others.len() > 1 {
                let mut all: Vec<_> =
                    unions.iter().map(|(position, union)| self.contender_of_union(*position, union)).collect();
                let place = if is_first { all.len() } else { 0 };
                all.splice(place..place, others);
                self.contenders = all;
            }
        }
        Ok(is_first.then(|| {
            let (position, union) = unions.swap_remove(0);
            (Chosen::Branches { position, order: union.order }, union)
        }))
    }

    /// Chooses the index of each branch of an `$or`: by the rules, unless estimates show another one to be clearly
    /// cheaper. Branches do not run against each other.
    pub(super) fn branch_chooser(&self) -> impl FnMut(&[Arc<Index>], &[Expression]) -> Result<Option<Candidate>> + '_ {
        let mut branches = 0;
        move |indexes, predicates| {
            branches += 1;
            let strings = &self.query.scope.strings;
            let mut ranked = choose::ranked(indexes, predicates, None, strings, &self.steps).into_iter();
            let Some(best) = ranked.next() else { return Ok(None) };
            if branches > BRANCHES_MAX || ranked.len() == 0 || !estimates::may_choose(self.collection) {
                return Ok(Some(best));
            }
            let rivals = choose::rivals(&best, predicates, None, ranked);
            self.clearly_cheaper(best, rivals).map(Some)
        }
    }

    /// A scan of an index that seeks from value to value of its first fields, on which there is no condition, if it is
    /// clearly cheaper than the collection scan: few values lead the keys, and few of their documents match.
    pub(super) fn skipping(&self, indexes: &[Arc<Index>]) -> Result<Option<Candidate>> {
        // MongoDB scans the collection for such a query. So it shows no keys, and a capped collection gives documents in
        // the order of their insertion.
        let is_order_or_key_seen = self.query.reads_keys() || self.collection.is_capped();
        if is_order_or_key_seen || !estimates::may_choose(self.collection) {
            return Ok(None);
        }
        let (predicates, strings) = (self.query.filter.root().conjuncts(), &self.query.scope.strings);
        let unled = choose::unled(indexes, predicates, strings, &self.steps);
        let (candidates, contenders): (Vec<_>, Vec<_>) =
            unled.map(|candidate| (candidate.clone(), self.contender(candidate))).unzip();
        if contenders.is_empty() {
            return Ok(None);
        }
        let (collection, operation) = (self.collection, &*self.query.scope.operation);
        let choice = Choice { collection, operation, contenders: &contenders, demand: Demand::of(self.query) };
        let cheaper = choice.cheaper_than_scan()?;
        let is_cheaper = |candidate: &Candidate| Some(Chosen::One(candidate.bounds.index.keyspace)) == cheaper;
        Ok(candidates.into_iter().find(is_cheaper))
    }

    fn clearly_cheaper(&self, best: Candidate, rivals: Vec<Candidate>) -> Result<Candidate> {
        if rivals.is_empty() {
            return Ok(best);
        }
        let as_branch = |candidate: &Candidate| Contender {
            chosen: Chosen::One(candidate.bounds.index.keyspace),
            scans: vec![BranchScan::Keys(candidate.bounds.clone(), Direction::Forward)],
            scans_count: 1,
            union: None,
            is_sorted: false,
            reads_documents: true,
            decides_all: false,
        };
        let contenders: Vec<_> = std::iter::once(&best).chain(&rivals).map(as_branch).collect();
        let choice = Choice {
            collection: self.collection,
            operation: &self.query.scope.operation,
            contenders: &contenders,
            demand: Demand { is_sorted: false, wanted: None },
        };
        let estimates = choice.estimates()?.unwrap_or_default();
        let clear = estimates::clear_choice(&estimates).map(|clear| clear.chosen);
        let cheaper = rivals.into_iter().find(|rival| Some(Chosen::One(rival.bounds.index.keyspace)) == clear);
        Ok(cheaper.unwrap_or(best))
    }
}
