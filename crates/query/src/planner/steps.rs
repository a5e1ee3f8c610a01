//! The limit on the work of planning one query.
//!
//! A filter may have ten thousand alternatives, and each of them may have a choice of 64 indexes. Once the steps are used
//! up, the collection is scanned, and explain says so. Steps and not a clock decide, so that a plan does not depend on
//! how busy the machine is.

use bunko_catalog::Index;
use bunko_matcher::Expression;
use std::cell::Cell;

/// Maximum number of steps. A step examines one condition or one field for an index: about a tenth of a microsecond.
pub(super) const STEPS_MAX: usize = 200_000;

/// Number of steps that are left; `None` once a request for steps was larger than that.
pub(super) struct Steps(Cell<Option<usize>>);

impl Steps {
    pub fn new() -> Self {
        Self(Cell::new(Some(STEPS_MAX)))
    }

    /// Takes the steps that deriving bounds in an index needs. Returns whether enough were left.
    pub fn take(&self, index: &Index, predicates: &[Expression]) -> bool {
        let left = self.0.get().and_then(|left| left.checked_sub(needed(index, predicates)));
        self.0.set(left);
        left.is_some()
    }

    pub fn are_used_up(&self) -> bool {
        self.0.get().is_none()
    }

    pub fn used(&self) -> usize {
        STEPS_MAX - self.0.get().unwrap_or(0)
    }
}

/// Steps of deriving the bounds of an index: two for the index, and one for each field and each condition examined.
fn needed(index: &Index, predicates: &[Expression]) -> usize {
    let of_field = |path: &str| predicates.iter().map(|predicate| examined(predicate, path)).sum::<usize>();
    2 + index.fields.iter().map(|field| 1 + of_field(&field.path)).sum::<usize>()
}

/// Number of conditions that are examined for bounds on a path. Alternatives have none once one of them has none.
fn examined(expression: &Expression, path: &str) -> usize {
    match expression {
        Expression::And(children) | Expression::Nor(children) => {
            children.iter().map(|child| examined(child, path)).sum()
        }
        Expression::Or(children) => {
            let bounded = children.iter().take_while(|child| asks_for(child, path));
            1 + bounded.map(|child| examined(child, path)).sum::<usize>()
        }
        Expression::Not(child) => examined(child, path),
        _ => 1,
    }
}

/// Whether an expression has a condition on a path.
pub(super) fn asks_for(expression: &Expression, path: &str) -> bool {
    match expression {
        Expression::And(children) | Expression::Or(children) | Expression::Nor(children) => {
            children.iter().any(|child| asks_for(child, path))
        }
        Expression::Not(child) => asks_for(child, path),
        Expression::Expr(expr) => expr.implied().iter().any(|implied| implied.path == path),
        Expression::ElemMatchObject { path: own, filter } => {
            let below = path.strip_prefix(own.as_str()).and_then(|rest| rest.strip_prefix('.'));
            own.as_str() == path || below.is_some_and(|below| asks_for(filter, below))
        }
        other => other.path().is_some_and(|own| !own.is_itself() && own.as_str() == path),
    }
}
