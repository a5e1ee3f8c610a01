//! The paths that a filter has conditions on.

use bunko_matcher::{Condition, Expression};

/// Whether an expression has a condition on a path.
pub(super) fn asks_for(expression: &Expression, path: &str) -> bool {
    match expression {
        Expression::Expr(expr) => expr.implied().iter().any(|implied| implied.path == path),
        Expression::OnPath(own, Condition::ElemMatchObject(filter)) => {
            own.is(path) || own.below(path).is_some_and(|below| asks_for(filter, below))
        }
        Expression::OnPath(own, _) => own.is(path),
        other => other.parts().iter().any(|part| asks_for(part, path)),
    }
}
