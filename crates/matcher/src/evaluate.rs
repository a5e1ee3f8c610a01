//! Matching a tree against a subject.

use crate::expression::{Expr, Expression};
use crate::operators::{bits, compare, elem_match, in_list, modulo};
use crate::path::{Leaves, Path, Subject};
use bunko_bson::ValueRef;
use bunko_errors::Failure;

/// What matching leaves behind beside its answer.
#[derive(Default)]
pub(crate) struct Evaluation {
    /// Index of the outermost array's element that satisfied the latest array predicate.
    pub position: Option<usize>,
    /// The first error of an `$expr`; the answer means nothing then.
    pub failure: Option<Failure>,
}

impl Evaluation {
    /// Runs a part whose positions count only if it matches.
    fn scoped(&mut self, part: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.position;
        let matched = part(self);
        if !matched {
            self.position = before;
        }
        matched
    }

    /// Runs a part under a negation: what it matched is no position.
    fn negated(&mut self, part: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.position;
        let matched = part(self);
        self.position = before;
        !matched
    }

    fn expr(&mut self, expr: &Expr, subject: &impl Subject) -> bool {
        let Some(document) = subject.document() else { return false };
        match expr.predicate.matches(document) {
            Ok(matched) => matched,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                false
            }
        }
    }
}

impl Expression {
    /// Whether the subject matches.
    pub(crate) fn evaluate<S: Subject>(&self, subject: S, evaluation: &mut Evaluation) -> bool {
        match self {
            Self::And(children) => evaluation
                .scoped(|evaluation| children.iter().all(|child| child.evaluate(subject, evaluation))),
            Self::Or(children) => children.iter().any(|child| child.evaluate(subject, evaluation)),
            Self::Nor(children) => evaluation
                .negated(|evaluation| children.iter().any(|child| child.evaluate(subject, evaluation))),
            Self::Not(child) => evaluation.negated(|evaluation| child.evaluate(subject, evaluation)),
            Self::Compare { path, op, value } => {
                let operand = value.as_ref();
                leaf(subject, path, evaluation, |value| compare::matches(*op, value, operand))
            }
            Self::In { path, values, regexes } => {
                leaf(subject, path, evaluation, |value| in_list::matches(values, regexes, value))
            }
            Self::Regex { path, regex } => leaf(subject, path, evaluation, |value| regex.matches(value)),
            Self::Exists { path } => leaf(subject, path, evaluation, |value| value.is_some()),
            Self::Type { path, types } => leaf(subject, path, evaluation, |value| {
                value.is_some_and(|value| types.contains(value.kind()))
            }),
            Self::Mod { path, divisor, remainder } => {
                leaf(subject, path, evaluation, |value| modulo::matches(*divisor, *remainder, value))
            }
            Self::Bits { path, test, mask } => {
                leaf(subject, path, evaluation, |value| bits::matches(*test, mask, value))
            }
            Self::Size { path, size } => subject.any(path, Leaves::Whole, &mut |value: Option<ValueRef<'_>>, _| {
                matches!(value, Some(ValueRef::Array(array)) if array.count() as u64 == *size)
            }),
            Self::ElemMatchObject { path, filter } => elem_match::matches_object(subject, path, filter, evaluation),
            Self::ElemMatchValue { path, condition } => {
                elem_match::matches_value(subject, path, condition, evaluation)
            }
            Self::Expr(expr) => evaluation.expr(expr, &subject),
            Self::AlwaysTrue => true,
            Self::AlwaysFalse => false,
        }
    }
}

/// Tests the values at a path, arrays expanded, and notes the position of the one that matched.
#[inline]
fn leaf<S: Subject>(
    subject: S,
    path: &Path,
    evaluation: &mut Evaluation,
    test: impl Fn(Option<ValueRef<'_>>) -> bool,
) -> bool {
    subject.any(path, Leaves::ElementsAndWhole, &mut |value: Option<ValueRef<'_>>, index: Option<usize>| {
        let matched = test(value);
        if matched && index.is_some() {
            evaluation.position = index;
        }
        matched
    })
}
