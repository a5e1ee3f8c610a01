//! The candidates between which rules leave a choice.

use super::choose;
use super::{Builder, Candidate, Chosen, predicates_of};
use crate::estimates::{self, Choice, Demand};
use crate::plan::Contender;
use crate::stages::Residual;
use bunko_catalog::Index;
use bunko_errors::Result;
use bunko_matcher::Expression;
use std::sync::Arc;

/// Maximum number of branches of an `$or` whose index is chosen by estimates.
const BRANCHES_MAX: usize = 16;

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
        let residual = Residual::without(&candidate.bounds.decided, predicates_of(self.query.filter.root()).len());
        let reads_documents = self.keys_suffice(&residual).is_none() && !self.is_covering(&candidate);
        Contender {
            decides_all: residual.decided_by_keys().is_some(),
            reads_documents,
            is_sorted: candidate.sorted.is_some(),
            bounds: candidate.bounds,
        }
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

    fn clearly_cheaper(&self, best: Candidate, rivals: Vec<Candidate>) -> Result<Candidate> {
        if rivals.is_empty() {
            return Ok(best);
        }
        let as_branch = |candidate: &Candidate| Contender {
            bounds: candidate.bounds.clone(),
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
