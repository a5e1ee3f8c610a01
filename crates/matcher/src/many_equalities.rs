//! Tests many equalities at one path that must all hold: `{$all: [...]}` with many values.
//!
//! Tested separately, each of them would be compared with each array element.

use crate::comparison::Comparison;
use crate::evaluation::{Evaluation, any_value};
use crate::expression::{Condition, Expression};
use crate::path::{Leaves, Path, Subject};
use bunko_bson::{Value, ValueRef};
use std::cell::{Cell, RefCell};

/// The equalities of a list at one path, sorted by operand.
struct Equalities<'e> {
    path: &'e Path,
    /// The distinct operands.
    operands: Vec<ValueRef<'e>>,
    /// The operand of the last equality in the list; its match is the position.
    last: ValueRef<'e>,
}

/// The path of an equality that may be tested together with others at that path.
pub(crate) fn path(expression: &Expression) -> Option<&Path> {
    match expression {
        // A regex may be a pattern.
        Expression::OnPath(_, Condition::Compare(_, Value::Regex { .. })) => None,
        Expression::OnPath(path, Condition::Compare(Comparison::Eq, _)) => Some(path),
        _ => None,
    }
}

/// Whether all of `children` match, which are equalities at one [`path`]; `None` if the operation has to stop.
pub(crate) fn all_match<S: Subject>(
    children: &[Expression],
    subject: S,
    evaluation: &mut Evaluation<'_>,
) -> Option<bool> {
    let equalities = Equalities::of(children, evaluation)?;
    let strings = evaluation.strings;
    let found = RefCell::new(vec![false; equalities.operands.len()]);
    let missing = Cell::new(equalities.operands.len());
    let position = Cell::new(None);
    let matched =
        any_value(subject, equalities.path, Leaves::ElementsAndWhole, evaluation, |value, index, evaluation| {
            let sought = value.unwrap_or(ValueRef::Null);
            let at = equalities.operands.binary_search_by(|operand| strings.compare(*operand, sought));
            let Ok(at) = at else { return false };
            let operand = equalities.operands[at];
            // A missing value sorts with null, but does not equal all operands that sort there.
            if !evaluation.goes_on(1) || !Comparison::Eq.matches(value, operand, strings) {
                return false;
            }
            if !std::mem::replace(&mut found.borrow_mut()[at], true) {
                missing.set(missing.get() - 1);
                if strings.equal(operand, equalities.last) {
                    position.set(index);
                }
            }
            missing.get() == 0
        });
    if matched && position.get().is_some() {
        evaluation.position = position.get();
    }
    Some(matched)
}

impl<'e> Equalities<'e> {
    fn of(children: &'e [Expression], evaluation: &mut Evaluation<'_>) -> Option<Self> {
        let path = path(children.first()?)?;
        let operands = children.iter().filter_map(|child| match child {
            Expression::OnPath(_, Condition::Compare(_, value)) => Some(value.as_ref()),
            _ => None,
        });
        let mut operands: Vec<_> = operands.collect();
        let last = *operands.last()?;
        if !evaluation.goes_on(operands.len()) {
            return None;
        }
        let strings = evaluation.strings;
        operands.sort_by(|one, other| strings.compare(*one, *other));
        operands.dedup_by(|one, other| strings.equal(*one, *other));
        Some(Self { path, operands, last })
    }
}
