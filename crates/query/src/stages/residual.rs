//! The part of a filter that has to be evaluated on documents.

use super::WholeDocument;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use bunko_errors::Result;

/// Which predicates remain. Where any does, the whole filter is evaluated: what the keys decided holds anyway.
#[derive(Clone, Debug)]
pub(crate) enum Residual {
    Nothing,
    /// Only the check that the stage above makes on the document.
    Above,
    Whole,
    /// All but those at these positions of the outermost conjunction.
    Without(Vec<usize>),
}

/// Says that keys decide the whole filter. Stages that read no documents cannot be made without it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecidedByKeys(());

impl Residual {
    pub fn none() -> Self {
        Self::Nothing
    }

    pub fn whole() -> Self {
        Self::Whole
    }

    /// What remains of `count` predicates when some are decided.
    pub fn without(decided: &[usize], count: usize) -> Self {
        match decided.len() {
            0 if count > 0 => Self::Whole,
            decided_count if decided_count == count => Self::Nothing,
            _ => Self::Without(decided.to_vec()),
        }
    }

    /// The same residual where the stage above checks the document too.
    pub fn and_above(self) -> Self {
        if matches!(self, Self::Nothing) { Self::Above } else { self }
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Whether no document has to be read to evaluate the filter.
    pub fn decided_by_keys(&self) -> Option<DecidedByKeys> {
        self.is_nothing().then_some(DecidedByKeys(()))
    }

    /// Whether a document that was found matches.
    #[inline]
    pub fn matches(&self, query: &FindQuery, document: WholeDocument<'_>) -> Result<bool> {
        match self {
            Self::Nothing | Self::Above => Ok(true),
            Self::Whole | Self::Without(_) => document.matches(query),
        }
    }

    /// Adds `filter` to what explain says of a stage.
    pub fn describe(&self, query: &FindQuery, facts: &mut Facts<'_>) {
        match self {
            Self::Nothing | Self::Above => {}
            Self::Whole => {
                facts.append_filter("filter", &query.filter);
            }
            Self::Without(decided) => {
                let is_left = |position: usize| !decided.contains(&position);
                facts.append_filter_part("filter", &query.filter, &is_left);
            }
        }
    }
}
