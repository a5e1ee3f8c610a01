//! The part of a filter that has to be evaluated on documents.

use crate::find_query::FindQuery;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_matcher::Expression;

/// Which predicates remain. Where any does, the whole filter is evaluated: what the keys decided holds anyway.
#[derive(Clone, Debug)]
pub(crate) enum Residual {
    Nothing,
    Whole,
    /// All but those at these positions of the outermost conjunction.
    Without(Vec<usize>),
}

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

    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Whether a document that was found matches.
    #[inline]
    pub fn matches(&self, query: &FindQuery, document: DocumentRef<'_>) -> Result<bool> {
        if self.is_nothing() { Ok(true) } else { query.filter.try_matches(document) }
    }

    /// Adds `filter` to what explain says of a stage.
    pub fn describe(&self, query: &FindQuery, facts: &mut DocumentBuf) {
        match self {
            Self::Nothing => {}
            Self::Whole => {
                crate::explain::append_filter(facts, "filter", &query.filter.to_document());
            }
            Self::Without(decided) => {
                crate::explain::append_filter(facts, "filter", &remaining(query, decided));
            }
        }
    }
}

/// The filter's normal form without some of its predicates.
fn remaining(query: &FindQuery, decided: &[usize]) -> DocumentBuf {
    let whole = query.filter.to_document();
    let Expression::And(_) = query.filter.root() else { return whole };
    // The document's conjunction lists the tree's children in their order.
    let Some(ValueRef::Array(predicates)) = whole.as_ref().get("$and") else { return whole };
    let rest: Vec<ValueRef<'_>> = predicates
        .iter()
        .enumerate()
        .filter(|(position, _)| !decided.contains(position))
        .map(|(_, predicate)| predicate)
        .collect();
    match rest.as_slice() {
        [ValueRef::Document(only)] => DocumentRef::to_owned(*only),
        several => DocumentBuf::new().with("$and", &several.iter().copied().collect::<ArrayBuf>()),
    }
}
