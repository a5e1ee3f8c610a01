//! Searches in a filter, by distance and by text: only a plan can run them.

use crate::expression::{Condition, Expression};
use crate::operands::TextSearch;
use bunko_errors::{Failure, Result};
use std::sync::Arc;

/// Refuses searches that a plan cannot run: more than one, or one that is not a condition on every document.
pub(crate) fn check_near(root: &Expression) -> Result<()> {
    let top = root.conjuncts();
    if top.iter().filter(|child| is_near(child)).count() > 1 {
        return Err(Failure::bad_value("Too many geoNear expressions"));
    }
    if top.iter().any(|child| !is_near(child) && holds_near(child)) {
        return Err(Failure::bad_value("geo $near must be top-level expr"));
    }
    Ok(())
}

/// Whether the tree contains a search by distance.
pub(crate) fn holds_near(expression: &Expression) -> bool {
    is_near(expression) || expression.parts().iter().any(holds_near)
}

/// Whether an expression is itself a search by distance.
fn is_near(expression: &Expression) -> bool {
    matches!(expression, Expression::OnPath(_, Condition::Near(_)))
}

/// The text search of a filter, at any depth.
pub(crate) fn text_of(root: &Expression) -> Option<&Arc<TextSearch>> {
    if let Expression::Text(search) = root { Some(search) } else { root.parts().iter().find_map(text_of) }
}

/// Refuses searches that a plan cannot run.
/// # Errors
/// `BadValue` for more than one search, for a negated search, and for a search together with `$near`.
pub(crate) fn check_text(root: &Expression) -> Result<()> {
    match count_texts(root) {
        0 => return Ok(()),
        1 => {}
        _ => return Err(Failure::bad_value("Too many text expressions")),
    }
    if is_negated(root) {
        return Err(Failure::bad_value("text expression not allowed in nor"));
    }
    if root.conjuncts().iter().any(is_near) {
        return Err(Failure::bad_value("text and geoNear not allowed in same query"));
    }
    Ok(())
}

fn count_texts(root: &Expression) -> usize {
    if let Expression::Text(_) = root { 1 } else { root.parts().iter().map(count_texts).sum() }
}

fn is_negated(root: &Expression) -> bool {
    match root {
        Expression::Nor(children) => children.iter().any(|child| count_texts(child) > 0),
        other => other.parts().iter().any(is_negated),
    }
}
