//! Indexes that are walked as a whole. That narrows nothing down, but each document that is asked for has a key there. Beside a
//! search of texts under an `$or` MongoDB takes such a walk for conditions that have no bounds of their own.

use super::choose::is_open;
use super::index_bounds::IndexBounds;
use super::predicates_of;
use bunko_bson::StringOrder;
use bunko_catalog::{Answers, Index, KeyForm};
use bunko_matcher::Expression;
use std::sync::Arc;

/// Which documents a condition on the first field of an index asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Documents that have the field.
    WithField,
    /// Perhaps documents without the field too.
    Any,
}

/// All of an index that has a key of each document that satisfies all of `predicates`, one of which is on its first field;
/// `None` where there is none.
pub(super) fn bounds(indexes: &[Arc<Index>], predicates: &[Expression], strings: &StringOrder) -> Option<IndexBounds> {
    let serves = |index: &&Arc<Index>| {
        let first = &index.fields[0];
        let is_plain = index.kind.answers() == Answers::ByField && first.form == KeyForm::Value;
        let mut asked = predicates.iter().filter_map(|predicate| asked_at(predicate, &first.path));
        is_plain
            && is_open(index, predicates, strings)
            && asked.any(|asked| asked == Asked::WithField || !index.is_sparse)
    };
    indexes.iter().find(serves).map(IndexBounds::full)
}

/// Which documents an expression on a path asks for; `None` where an index on that path could not serve the expression
/// on MongoDB either.
/// Source: MongoDB manual 8.2, "$text", and what `explain` shows there of each operator.
fn asked_at(expression: &Expression, path: &str) -> Option<Asked> {
    let is_on = |own: &bunko_matcher::Path| !own.is_itself() && own.as_str() == path;
    match expression {
        Expression::Regex { path: own, .. }
        | Expression::Exists { path: own }
        | Expression::Type { path: own, .. }
        | Expression::Mod { path: own, .. }
        | Expression::ElemMatchValue { path: own, .. } => is_on(own).then_some(Asked::WithField),
        Expression::Compare { path: own, .. } | Expression::In { path: own, .. } => is_on(own).then_some(Asked::Any),
        Expression::Not(child) => match &**child {
            Expression::In { regexes, .. } if !regexes.is_empty() => None,
            Expression::Compare { path: own, .. }
            | Expression::In { path: own, .. }
            | Expression::Exists { path: own } => is_on(own).then_some(Asked::Any),
            _ => None,
        },
        Expression::ElemMatchObject { path: own, filter } => {
            let below = path.strip_prefix(own.as_str())?.strip_prefix('.')?;
            predicates_of(filter).iter().find_map(|inner| asked_at(inner, below))
        }
        Expression::And(children) => children.iter().find_map(|child| asked_at(child, path)),
        Expression::Or(children) => {
            let asked: Option<Vec<_>> = children.iter().map(|child| asked_at(child, path)).collect();
            asked.map(|asked| if asked.contains(&Asked::Any) { Asked::Any } else { Asked::WithField })
        }
        Expression::JsonSchema(schema) => schema.requires(path).then_some(Asked::WithField),
        _ => None,
    }
}
