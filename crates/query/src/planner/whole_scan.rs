//! Scans of whole indexes. They narrow nothing, but each matching document has a key there. MongoDB uses them under an
//! `$or` with a text search, for conditions without bounds of their own.

use super::choose::is_open;
use super::index_bounds::IndexBounds;
use bunko_bson::StringOrder;
use bunko_catalog::{Answers, Index, KeyForm};
use bunko_matcher::{Condition, Expression};
use std::sync::Arc;

/// The documents that a condition on the first index field may match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchedDocuments {
    /// Only documents that have the field.
    WithField,
    /// Perhaps documents without the field too.
    Any,
}

/// A whole index that has a key of each document matching all of `predicates`, one of which is on its first field;
/// `None` if there is no such index.
pub(super) fn bounds(indexes: &[Arc<Index>], predicates: &[Expression], strings: &StringOrder) -> Option<IndexBounds> {
    let serves = |index: &&Arc<Index>| {
        let first = &index.fields[0];
        let is_plain = index.kind.answers() == Answers::ByField && first.form == KeyForm::Value;
        let mut asked = predicates.iter().filter_map(|predicate| asked_at(predicate, &first.path));
        is_plain
            && is_open(index, predicates, strings)
            && asked.any(|asked| asked == MatchedDocuments::WithField || !index.is_sparse)
    };
    indexes.iter().find(serves).map(IndexBounds::full)
}

/// The documents that an expression on a path may match; `None` if MongoDB would not use an index on the path.
/// Source: MongoDB manual 8.2, "$text", and explain output of MongoDB 8.2 for each operator.
fn asked_at(expression: &Expression, path: &str) -> Option<MatchedDocuments> {
    match expression {
        Expression::OnPath(own, Condition::ElemMatchObject(filter)) => {
            let below = own.below(path)?;
            filter.conjuncts().iter().find_map(|inner| asked_at(inner, below))
        }
        Expression::OnPath(own, condition) if own.is(path) => match condition {
            Condition::Compare(..) | Condition::In { .. } => Some(MatchedDocuments::Any),
            Condition::Regex(_) | Condition::Exists | Condition::Type(_) => Some(MatchedDocuments::WithField),
            Condition::Mod { .. } | Condition::ElemMatchValue(_) => Some(MatchedDocuments::WithField),
            _ => None,
        },
        Expression::Not(child) => match &**child {
            Expression::OnPath(_, Condition::In { regexes, .. }) if !regexes.is_empty() => None,
            Expression::OnPath(own, Condition::Compare(..) | Condition::In { .. } | Condition::Exists) => {
                own.is(path).then_some(MatchedDocuments::Any)
            }
            _ => None,
        },
        Expression::And(children) => children.iter().find_map(|child| asked_at(child, path)),
        Expression::Or(children) => {
            let asked: Option<Vec<_>> = children.iter().map(|child| asked_at(child, path)).collect();
            asked.map(|asked| {
                if asked.contains(&MatchedDocuments::Any) { MatchedDocuments::Any } else { MatchedDocuments::WithField }
            })
        }
        Expression::JsonSchema(schema) => schema.requires(path).then_some(MatchedDocuments::WithField),
        _ => None,
    }
}
