//! `partialFilterExpression`: the filter of documents that an index takes.

use crate::key_pattern::cannot_create;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_errors::Result;
use bunko_matcher::{Condition, Expression, Filter};

/// A filter of an index.
#[derive(Debug)]
pub struct PartialFilter {
    filter: Filter,
}

impl PartialFilter {
    /// Parses the value of the option. `strings` is the index's order of strings.
    /// # Errors
    /// `CannotCreateIndex` for an operator that is not allowed; `QueryFeatureNotAllowed` for a schema; as
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
    /// As [`Filter::try_matches`], which does not fail for the operators allowed here.
    pub(crate) fn takes(&self, document: DocumentRef<'_>) -> Result<bool> {
        self.filter.try_matches(document)
    }

    /// Whether both have the same conditions, in any order and nesting.
    pub(crate) fn is_equivalent(&self, other: &Self) -> bool {
        canonical(self.filter.root()) == canonical(other.filter.root())
    }

    /// The condition that each document in the index meets.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }
}

/// A text that is equal for expressions which differ only in the order and nesting of their conditions.
fn canonical(expression: &Expression) -> String {
    let (name, children) = match expression {
        Expression::And(children) => ("and", children),
        Expression::Or(children) => ("or", children),
        leaf => return format!("{leaf:?}"),
    };
    let mut parts = Vec::new();
    collect(name, children, &mut parts);
    parts.sort_unstable();
    parts.dedup();
    match parts.as_slice() {
        [only] => only.clone(),
        parts => format!("{name}({})", parts.join(", ")),
    }
}

/// Collects the canonical texts of `children`. A child of the same kind is replaced by its own children.
fn collect(name: &str, children: &[Expression], parts: &mut Vec<String>) {
    for child in children {
        match child {
            Expression::And(inner) if name == "and" => collect(name, inner, parts),
            Expression::Or(inner) if name == "or" => collect(name, inner, parts),
            other => parts.push(canonical(other)),
        }
    }
}

fn is_allowed(expression: &Expression) -> bool {
    match expression {
        Expression::And(children) | Expression::Or(children) => children.iter().all(is_allowed),
        // MongoDB's manual does not list geospatial conditions; its servers accept them since version 6.
        Expression::OnPath(_, condition) => matches!(
            condition,
            Condition::Compare(..) | Condition::In { .. } | Condition::Exists | Condition::Type(_) | Condition::Geo(_)
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    fn parse(text: &str) -> PartialFilter {
        let filter = shell::parse_document(text).expect(text);
        PartialFilter::parse(filter.as_ref(), &StringOrder::default()).expect(text)
    }

    #[test]
    fn order_and_nesting_make_no_difference() {
        let written =
            ["{a: 1, b: {$gt: 2}}", "{b: {$gt: 2}, a: 1}", "{$and: [{b: {$gt: 2}}, {$and: [{a: 1}, {a: 1}]}]}"];
        for other in written {
            assert!(parse(written[0]).is_equivalent(&parse(other)), "{other}");
        }
        assert!(parse("{a: {$gt: 1, $lt: 5}}").is_equivalent(&parse("{a: {$lt: 5, $gt: 1}}")));
        assert!(parse("{$or: [{a: 1}, {b: 1}]}").is_equivalent(&parse("{$or: [{b: 1}, {a: 1}]}")));
        for other in ["{a: 1, b: {$gt: 3}}", "{a: 1}", "{a: 1, b: {$gte: 2}}", "{$or: [{a: 1}, {b: {$gt: 2}}]}"] {
            assert!(!parse(written[0]).is_equivalent(&parse(other)), "{other}");
        }
    }
}
