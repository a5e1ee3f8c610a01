//! The part of a filter that must be evaluated on documents.

use super::WholeDocument;
use crate::explain::Facts;
use crate::find_query::FindQuery;
use bunko_errors::Result;
use bunko_matcher::planted::{Fault, active};

/// The predicates that remain. If any remains, the whole filter is evaluated: the predicates that keys decided hold
/// anyway.
#[derive(Clone, Debug)]
pub(crate) enum Residual {
    Nothing,
    /// Nothing but the check of the stage above.
    Above,
    Whole,
    /// All predicates except those at these positions of the top-level conjunction.
    Without(Vec<usize>),
}

/// Proof that keys decide the whole filter; required for making a stage that reads no documents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecidedByKeys(());

impl Residual {
    pub fn none() -> Self {
        Self::Nothing
    }

    pub fn whole() -> Self {
        Self::Whole
    }

    /// The residual of `count` predicates after keys decided these.
    pub fn without(decided: &[usize], count: usize) -> Self {
        match decided.len() {
            0 if count > 0 => Self::Whole,
            decided_count if decided_count == count || active(Fault::UndecidedPasses) => Self::Nothing,
            _ => Self::Without(decided.to_vec()),
        }
    }

    /// This residual, in case the stage above checks the document too.
    pub fn and_above(self) -> Self {
        if matches!(self, Self::Nothing) { Self::Above } else { self }
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Proof that the filter needs no document; `None` if it needs one.
    pub fn decided_by_keys(&self) -> Option<DecidedByKeys> {
        self.is_nothing().then_some(DecidedByKeys(()))
    }

    /// Whether a document matches.
    #[inline]
    pub fn matches(&self, query: &FindQuery, document: WholeDocument<'_>) -> Result<bool> {
        match self {
            Self::Nothing | Self::Above => Ok(true),
            Self::Whole | Self::Without(_) => document.matches(query),
        }
    }

    /// Adds the `filter` field of explain.
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
