//! The candidates between which rules leave a choice.

use super::{Builder, Candidate, predicates_of};
use crate::plan::Contender;
use crate::stages::Residual;

impl Builder<'_> {
    /// The candidates from which the query's index is chosen; none if the rules prove the best.
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
}
