//! `partialFilterExpression`: which documents an index takes.

use crate::key_pattern::cannot_create;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_errors::Result;
use bunko_matcher::{Expression, Filter};

/// A filter of the sort that an index may have.
#[derive(Debug)]
pub struct PartialFilter {
    filter: Filter,
}

impl PartialFilter {
    /// Parses the value of the option; strings are in the order that the index has.
    /// # Errors
    /// `CannotCreateIndex` for an operator that is not among those allowed; `QueryFeatureNotAllowed` for a schema; as
    /// [`Filter::parse`].
    /// Source: MongoDB manual, "Partial Indexes".
    pub(crate) fn parse(filter: DocumentRef<'_>, strings: &StringOrder) -> Result<Self> {
        bunko_matcher::refuse_schema(filter)?;
        let parsed = Filter::parse_collated(filter, strings)?;
        if !is_allowed(parsed.root()) {
            return Err(cannot_create(format!(
                "Expression not supported in partial index: {}",
                ValueText(ValueRef::Document(filter))
            )));
        }
        Ok(Self { filter: parsed })
    }

    /// Whether the index takes the document.
    /// # Errors
    /// As [`Filter::try_matches`], which fails for nothing that is allowed here.
    pub(crate) fn takes(&self, document: DocumentRef<'_>) -> Result<bool> {
        self.filter.try_matches(document)
    }

    /// What holds for each document of the index.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
}

fn is_allowed(expression: &Expression) -> bool {
    match expression {
        Expression::And(children) | Expression::Or(children) => children.iter().all(is_allowed),
        // MongoDB's manual does not name conditions on places; its servers take them since version 6.
        Expression::Compare { .. }
        | Expression::In { .. }
        | Expression::Exists { .. }
        | Expression::Type { .. }
        | Expression::Geo { .. } => true,
        _ => false,
    }
}
