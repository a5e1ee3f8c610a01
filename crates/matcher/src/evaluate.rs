//! Matching a tree against a subject.

use crate::expression::{Comparison, Expr, Expression};
use crate::many_equalities;
use crate::operators::regex::Regex;
use crate::operators::text::TextSearch;
use crate::operators::{bits, bucket_geo, compare, elem_match, geo, in_list, modulo};
use crate::path::{Leaves, Path, Subject, Visitor};
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;

/// Number of predicates in one list that are tested without counting them as work.
const FEW_PREDICATES: usize = 32;
/// Counted steps for a regular expression: backtracking can take long for few characters.
const REGEX_STEPS: usize = 64;

/// State of one evaluation, beside its answer.
pub(crate) struct Evaluation<'o> {
    /// Index of the outermost array's element that satisfied the latest array predicate.
    pub position: Option<usize>,
    /// The first error of an `$expr` or of the operation; the answer has no meaning then.
    failure: Option<Failure>,
    operation: Option<&'o OperationContext>,
    /// Order in which strings are compared.
    pub strings: &'o StringOrder,
}

impl<'o> Evaluation<'o> {
    pub fn new(operation: Option<&'o OperationContext>, strings: &'o StringOrder) -> Self {
        Self { position: None, failure: None, operation, strings }
    }

    /// Returns the answer.
    /// # Errors
    /// The first error of an `$expr` or of the operation.
    pub fn outcome(self, matched: bool) -> Result<bool> {
        self.failure.map_or(Ok(matched), Err)
    }

    /// Counts work. Returns false if the operation has to stop; then any answer will do.
    #[inline]
    pub fn goes_on(&mut self, steps: usize) -> bool {
        match self.operation.map(|operation| operation.work(steps)) {
            None | Some(Ok(())) => true,
            Some(Err(failure)) => {
                self.failure.get_or_insert(failure);
                false
            }
        }
    }

    /// Whether a value is a string that matches the regex, or is an equal regex.
    pub fn regex(&mut self, regex: &Regex, value: Option<ValueRef<'_>>) -> bool {
        match value {
            Some(ValueRef::String(text) | ValueRef::Symbol(text)) => {
                if !self.goes_on(REGEX_STEPS + text.len() / REGEX_STEPS) {
                    return true;
                }
                let operation = self.operation;
                let goes_on = |steps| operation.map_or(Ok(()), |operation| operation.work(steps));
                regex.is_match(text, goes_on).unwrap_or_else(|failure| {
                    self.failure.get_or_insert(failure);
                    true
                })
            }
            value => regex.is_same(value),
        }
    }

    /// Runs a part, and drops its position unless it matches.
    fn scoped(&mut self, part: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.position;
        let matched = part(self);
        if !matched {
            self.position = before;
        }
        matched
    }

    /// Negates a part, and drops its position.
    fn negated(&mut self, part: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.position;
        let matched = part(self);
        self.position = before;
        !matched
    }

    fn text(&mut self, search: &TextSearch, subject: &impl Subject) -> bool {
        let Some(document) = subject.document() else { return false };
        match search.matches(document, self.operation) {
            Ok(matched) => matched,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                false
            }
        }
    }

    /// The result of an `$expr`; `None` for a missing value.
    pub fn result(&mut self, expr: &Expr, document: DocumentRef<'_>) -> Option<Value> {
        match expr.predicate.result(document, self.operation) {
            Ok(result) => result,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                None
            }
        }
    }

    fn expr(&mut self, expr: &Expr, subject: &impl Subject) -> bool {
        let Some(document) = subject.document() else { return false };
        match expr.predicate.matches(document, self.operation) {
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
    pub(crate) fn evaluate<S: Subject>(&self, subject: S, evaluation: &mut Evaluation<'_>) -> bool {
        match self {
            Self::And(children) => evaluation.scoped(|evaluation| {
                if children.len() > FEW_PREDICATES {
                    return all_of_many(children, subject, evaluation);
                }
                children.iter().all(|child| child.evaluate(subject, evaluation))
            }),
            Self::Or(children) if are_at_one_path(children) => any(children, subject, evaluation),
            // Positions within an `$or` do not count, unless it consists of equalities at one path, as a `$in` would.
            Self::Or(children) => !evaluation.negated(|evaluation| any(children, subject, evaluation)),
            Self::Nor(children) => evaluation.negated(|evaluation| any(children, subject, evaluation)),
            Self::Not(child) => evaluation.negated(|evaluation| child.evaluate(subject, evaluation)),
            Self::Compare { path, op, value } => {
                let operand = value.as_ref();
                leaf(subject, path, evaluation, |value, evaluation| {
                    compare::matches(*op, value, operand, evaluation.strings)
                })
            }
            Self::In { path, .. }
            | Self::Regex { path, .. }
            | Self::Exists { path }
            | Self::Type { path, .. }
            | Self::Mod { path, .. }
            | Self::Bits { path, .. }
            | Self::Geo { path, .. } => {
                leaf(subject, path, evaluation, |value, evaluation| self.matches_value(value, evaluation))
            }
            Self::BucketGeo { field, geo } => {
                subject.document().is_some_and(|bucket| bucket_geo::matches(bucket, field, geo, evaluation))
            }
            Self::Size { path, size } => any_value(
                subject,
                path,
                Leaves::Whole,
                evaluation,
                |value, _, _| matches!(value, Some(ValueRef::Array(array)) if array.count() as u64 == *size),
            ),
            Self::ElemMatchObject { path, filter } => elem_match::matches_object(subject, path, filter, evaluation),
            Self::ElemMatchValue { path, condition } => elem_match::matches_value(subject, path, condition, evaluation),
            Self::JsonSchema(schema) => schema.matches(subject, evaluation),
            Self::Expr(expr) => evaluation.expr(expr, &subject),
            Self::AlwaysTrue | Self::Near { .. } => true,
            Self::Text(search) => evaluation.text(search, &subject),
            Self::AlwaysFalse => false,
        }
    }

    /// Whether a value alone decides the condition for a document that has it, and no array, at `path`: regular
    /// expressions, `$mod`, lists and comparisons there, and combinations of them.
    pub fn is_on_value_at(&self, path: &str) -> bool {
        match self {
            Self::And(children) | Self::Or(children) => children.iter().all(|child| child.is_on_value_at(path)),
            Self::Compare { path: own, .. }
            | Self::In { path: own, .. }
            | Self::Regex { path: own, .. }
            | Self::Mod { path: own, .. } => !own.is_itself() && own.as_str() == path,
            _ => false,
        }
    }

    /// Whether a condition with [`Self::is_on_value_at`] holds for a value; strings compare as bytes.
    /// # Errors
    /// Errors of the operation.
    pub fn holds_for(&self, value: ValueRef<'_>, operation: &OperationContext) -> Result<bool> {
        let mut evaluation = Evaluation::new(Some(operation), StringOrder::BYTES);
        let holds = self.holds_for_value(value, &mut evaluation);
        evaluation.outcome(holds)
    }

    fn holds_for_value(&self, value: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        match self {
            Self::And(children) => children.iter().all(|child| child.holds_for_value(value, evaluation)),
            Self::Or(children) => children.iter().any(|child| child.holds_for_value(value, evaluation)),
            leaf => leaf.matches_value(Some(value), evaluation),
        }
    }

    /// Whether this is a condition on each single value at its path.
    pub(crate) fn is_on_values(&self) -> bool {
        matches!(
            self,
            Self::Compare { .. }
                | Self::In { .. }
                | Self::Regex { .. }
                | Self::Exists { .. }
                | Self::Type { .. }
                | Self::Mod { .. }
                | Self::Bits { .. }
                | Self::Geo { .. }
        )
    }

    /// Whether one value satisfies the condition, or whether a missing value does. Only for conditions with
    /// [`Self::is_on_values`].
    pub(crate) fn matches_value(&self, value: Option<ValueRef<'_>>, evaluation: &mut Evaluation<'_>) -> bool {
        match self {
            Self::Compare { op, value: operand, .. } => {
                compare::matches(*op, value, operand.as_ref(), evaluation.strings)
            }
            Self::In { values, regexes, .. } => in_list::matches(values, regexes, value, evaluation),
            Self::Regex { regex, .. } => evaluation.regex(regex, value),
            Self::Exists { .. } => value.is_some(),
            Self::Type { types, .. } => value.is_some_and(|value| types.contains(value.kind())),
            Self::Mod { divisor, remainder, .. } => modulo::matches(*divisor, *remainder, value),
            Self::Bits { test, mask, .. } => {
                !evaluation.goes_on(mask.positions().len() / 8) || bits::matches(*test, mask, value)
            }
            Self::Geo { geo, .. } => geo::matches(geo, value, evaluation),
            _ => false,
        }
    }
}

/// Whether all match; adjacent equalities at one path may be tested together.
fn all_of_many<S: Subject>(children: &[Expression], subject: S, evaluation: &mut Evaluation<'_>) -> bool {
    let same_path = |one: &Expression, other: &Expression| {
        let path = many_equalities::path(one);
        path.is_some() && path == many_equalities::path(other)
    };
    children.chunk_by(same_path).all(|group| {
        if group.len() > FEW_PREDICATES
            && let Some(matched) = many_equalities::all_match(group, subject, evaluation)
        {
            return matched;
        }
        group.iter().all(|child| one_of(children, subject, evaluation) && child.evaluate(subject, evaluation))
    })
}

fn any<S: Subject>(children: &[Expression], subject: S, evaluation: &mut Evaluation<'_>) -> bool {
    children.iter().any(|child| !one_of(children, subject, evaluation) || child.evaluate(subject, evaluation))
}

/// Whether all are equalities at one path, so that a `$in` could express them.
fn are_at_one_path(children: &[Expression]) -> bool {
    let mut paths = children.iter().map(|child| match child {
        Expression::Compare { path, op: Comparison::Eq, .. } | Expression::In { path, .. } => Some(path),
        _ => None,
    });
    let first = paths.next().flatten();
    first.is_some() && paths.all(|path| path == first)
}

/// Counts one predicate of a list, which may read all of the document. Returns false if the operation has to stop.
#[inline]
fn one_of<S: Subject>(children: &[Expression], subject: S, evaluation: &mut Evaluation<'_>) -> bool {
    const KIBIBYTE: usize = 1024;
    if children.len() <= FEW_PREDICATES {
        return true;
    }
    let steps = 1 + subject.document().map_or(0, |document| document.len_bytes() / KIBIBYTE);
    evaluation.failure.is_none() && evaluation.goes_on(steps)
}

/// Tests the values at a path, with arrays expanded, and notes the position of the match.
#[inline]
fn leaf<'o, S: Subject>(
    subject: S,
    path: &Path,
    evaluation: &mut Evaluation<'o>,
    test: impl Fn(Option<ValueRef<'_>>, &mut Evaluation<'o>) -> bool,
) -> bool {
    any_value(subject, path, Leaves::ElementsAndWhole, evaluation, |value, index, evaluation| {
        let matched = test(value, evaluation);
        if matched && index.is_some() {
            evaluation.position = index;
        }
        matched
    })
}

/// Tests the values at a path until one matches.
#[inline]
pub(crate) fn any_value<'o, S: Subject>(
    subject: S,
    path: &Path,
    leaves: Leaves,
    evaluation: &mut Evaluation<'o>,
    test: impl Fn(Option<ValueRef<'_>>, Option<usize>, &mut Evaluation<'o>) -> bool,
) -> bool {
    subject.any(path, leaves, &mut Counted { evaluation, test })
}

/// Tests values, and counts the elements searched.
struct Counted<'e, 'o, F> {
    evaluation: &'e mut Evaluation<'o>,
    test: F,
}

impl<'o, F: Fn(Option<ValueRef<'_>>, Option<usize>, &mut Evaluation<'o>) -> bool> Visitor for Counted<'_, 'o, F> {
    #[inline]
    fn test(&mut self, value: Option<ValueRef<'_>>, index: Option<usize>) -> bool {
        (self.test)(value, index, self.evaluation)
    }

    #[inline]
    fn goes_on(&mut self) -> bool {
        self.evaluation.goes_on(1)
    }
}
