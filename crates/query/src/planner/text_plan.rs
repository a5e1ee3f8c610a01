//! `$text`: which index serves it, and which of its keys are looked at.

use crate::find_query::{FindQuery, Hint};
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_catalog::{Index, KeySpan, TextIndex};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::{Comparison, Expression};
use bunko_text::{Search, TextFields};
use std::sync::Arc;

pub(super) const PREFIX_MISSING: &str = "failed to use text index to satisfy $text query (if text index is compound, are \
                                         equality predicates given for all prefix fields?)";
pub(super) const NOT_INDEXED: &str = "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have \
                                      to be indexed as well.";

/// Whether a filter that is not parsed yet looks for texts, anywhere that a plan can do so.
pub(crate) fn names_text(filter: DocumentRef<'_>) -> bool {
    filter.iter().any(|field| match (field.name, field.value) {
        ("$text", _) => true,
        ("$and" | "$or", ValueRef::Array(parts)) => parts.iter().filter_map(ValueRef::as_document).any(names_text),
        _ => false,
    })
}

/// The text index of a collection.
pub(super) struct Texts {
    pub index: Arc<Index>,
    pub fields: Arc<TextFields>,
}

/// Refuses what cannot be asked beside `$text`.
/// # Errors
/// `BadValue`.
pub(super) fn check(query: &FindQuery) -> Result<()> {
    match &query.hint {
        None => {}
        Some(Hint::Natural(_)) => {
            return Err(Failure::bad_value("text expression not allowed with $natural sort order"));
        }
        Some(_) => return Err(Failure::bad_value("text and hint not allowed in same query")),
    }
    if query.near.is_some() {
        return Err(Failure::bad_value("text and geoNear not allowed in same query"));
    }
    Ok(())
}

/// The text index among these: there is one at most.
/// # Errors
/// `IndexNotFound`.
pub(super) fn index(indexes: &[Arc<Index>]) -> Result<Texts> {
    let found = indexes.iter().find_map(|index| {
        index.kind.text().map(|text| Texts { index: Arc::clone(index), fields: Arc::clone(&text.fields) })
    });
    found.ok_or_else(|| Failure::new(ErrorCode::INDEX_NOT_FOUND, "text index required for $text query"))
}

/// Whether an alternative of an `$or` is a search, or holds one among other conditions.
pub(super) fn holds_text(alternative: &Expression) -> bool {
    super::predicates_of(alternative).iter().any(|predicate| matches!(predicate, Expression::Text(_)))
}

impl Texts {
    fn kind(&self) -> Option<&TextIndex> {
        self.index.kind.text()
    }

    /// The values of the fields before the texts, where the predicates name one for each and the index's documents are all
    /// that they ask for.
    pub fn prefix(&self, predicates: &[Expression], strings: &StringOrder) -> Option<Vec<Value>> {
        if self
            .index
            .partial_filter
            .as_ref()
            .is_some_and(|partial| !bunko_matcher::implies(predicates, partial.expression()))
        {
            return None;
        }
        let named = |path: &str| {
            predicates.iter().find_map(|predicate| match predicate {
                Expression::Compare { path: own, op: Comparison::Eq, value }
                    if own.as_str() == path && is_comparable(value, strings) =>
                {
                    Some(value.clone())
                }
                _ => None,
            })
        };
        self.kind()?.prefix.iter().map(|field| named(&field.path)).collect()
    }

    /// The keys of a search's terms.
    pub fn spans(&self, prefix: &[Value], search: &Search) -> Vec<KeySpan> {
        let Some(kind) = self.kind() else { return Vec::new() };
        let prefix: Vec<_> = prefix.iter().map(Value::as_ref).collect();
        search.terms.iter().map(|term| kind.span(&prefix, term)).collect()
    }
}

/// Whether a value is equal to one in a key if and only if their bytes are. No key holds an array.
fn is_comparable(value: &Value, strings: &StringOrder) -> bool {
    !matches!(value, Value::Array(_)) && (strings.is_bytes() || !StringOrder::holds_strings(value.as_ref()))
}
