//! Matching a tree against a subject.

use crate::comparison::Comparison;
use crate::evaluation::{Evaluation, any_value};
use crate::expression::{Condition, Expression};
use crate::many_equalities;
use crate::operands::{Regex, bucket_geo};
use crate::path::{AsElement, Leaves, Path, Subject};
use bunko_bson::{StringOrder, Value, ValueRef, number};
use bunko_errors::Result;
use bunko_operation::OperationContext;

/// Number of predicates in one list that are tested without counting them as work.
const FEW_PREDICATES: usize = 32;

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
            // An arm of its own for speed: most conditions are comparisons.
            Self::OnPath(path, Condition::Compare(op, operand)) => {
                let operand = operand.as_ref();
                leaf(subject, path, evaluation, |value, evaluation| op.matches(value, operand, evaluation.strings))
            }
            Self::OnPath(path, condition) => condition.matches_at(path, subject, evaluation),
            Self::BucketGeo { field, geo } => {
                subject.document().is_some_and(|bucket| bucket_geo::matches(bucket, field, geo, evaluation))
            }
            Self::JsonSchema(schema) => schema.matches(subject, evaluation),
            Self::Expr(expr) => subject.document().is_some_and(|document| {
                evaluation.settled(expr.predicate.matches(document, evaluation.operation), false)
            }),
            Self::AlwaysTrue => true,
            Self::Text(search) => subject
                .document()
                .is_some_and(|document| evaluation.settled(search.matches(document, evaluation.operation), false)),
            Self::AlwaysFalse => false,
        }
    }

    /// Whether the value at `path` alone decides the condition, for documents that have a value and no array there: it
    /// is a regular expression, `$mod`, a list or a comparison at `path`, or combines such conditions.
    pub fn is_on_value_at(&self, path: &str) -> bool {
        match self {
            Self::And(children) | Self::Or(children) => children.iter().all(|child| child.is_on_value_at(path)),
            Self::OnPath(
                own,
                Condition::Compare(..) | Condition::In { .. } | Condition::Regex(_) | Condition::Mod { .. },
            ) => own.is(path),
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
            Self::OnPath(_, condition) => condition.matches_value(Some(value), evaluation),
            _ => false,
        }
    }
}

impl Condition {
    /// Whether the values at the path in the subject satisfy the condition.
    #[inline]
    fn matches_at<S: Subject>(&self, path: &Path, subject: S, evaluation: &mut Evaluation<'_>) -> bool {
        match self {
            Self::Size(size) => any_value(
                subject,
                path,
                Leaves::Whole,
                evaluation,
                |value, _, _| matches!(value, Some(ValueRef::Array(array)) if array.count() as u64 == *size),
            ),
            Self::ElemMatchObject(filter) => {
                matches_element(subject, path, evaluation, |element, evaluation| is_object(filter, element, evaluation))
            }
            Self::ElemMatchValue(condition) => matches_element(subject, path, evaluation, |element, evaluation| {
                condition.evaluate(AsElement(element), evaluation)
            }),
            Self::Near(_) => true,
            _ => leaf(subject, path, evaluation, |value, evaluation| self.matches_value(value, evaluation)),
        }
    }

    /// Whether this is a condition on each single value at its path.
    pub(crate) fn is_on_values(&self) -> bool {
        !matches!(self, Self::Size(_) | Self::ElemMatchObject(_) | Self::ElemMatchValue(_) | Self::Near(_))
    }

    /// Whether one value satisfies the condition, or whether a missing value does. Only for conditions with
    /// [`Self::is_on_values`].
    pub(crate) fn matches_value(&self, value: Option<ValueRef<'_>>, evaluation: &mut Evaluation<'_>) -> bool {
        match self {
            Self::Compare(op, operand) => op.matches(value, operand.as_ref(), evaluation.strings),
            Self::In { values, regexes } => is_listed(values, regexes, value, evaluation),
            Self::Regex(regex) => evaluation.regex(regex, value),
            Self::Exists => value.is_some(),
            Self::Type(types) => value.is_some_and(|value| types.contains(value.kind())),
            Self::Mod { divisor, remainder } => leaves_remainder(*divisor, *remainder, value),
            Self::Bits(test, mask) => !evaluation.goes_on(mask.positions().len() / 8) || test.matches(mask, value),
            Self::Geo(geo) => geo.matches(value, evaluation),
            Self::Size(_) | Self::ElemMatchObject(_) | Self::ElemMatchValue(_) | Self::Near(_) => false,
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
        Expression::OnPath(path, Condition::Compare(Comparison::Eq, _) | Condition::In { .. }) => Some(path),
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
    evaluation.is_sound() && evaluation.goes_on(steps)
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

/// Whether a list contains `value`, or a missing value.
fn is_listed(
    values: &[Value],
    regexes: &[Regex],
    value: Option<ValueRef<'_>>,
    evaluation: &mut Evaluation<'_>,
) -> bool {
    let sought = value.unwrap_or(ValueRef::Null);
    values.binary_search_by(|candidate| evaluation.strings.compare(candidate.as_ref(), sought)).is_ok()
        || regexes.iter().any(|regex| evaluation.regex(regex, value))
}

/// Whether `value`, truncated to an integer, leaves this remainder.
fn leaves_remainder(divisor: i64, remainder: i64, value: Option<ValueRef<'_>>) -> bool {
    let integer = value.filter(|value| value.is_number()).and_then(number::truncate_to_i64);
    // Wrapping, since the smallest integer divided by -1 overflows, though its remainder is 0.
    integer.is_some_and(|integer| integer.wrapping_rem(divisor) == remainder)
}

/// Whether an element satisfies the filter of `$elemMatch`'s object form. An array counts as a document.
pub(crate) fn is_object(filter: &Expression, element: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
    match element {
        ValueRef::Document(document) => filter.evaluate(document, evaluation),
        ValueRef::Array(array) => filter.evaluate(array.as_document(), evaluation),
        _ => false,
    }
}

/// Whether some element of the array at the path passes the test.
fn matches_element<S: Subject>(
    subject: S,
    path: &Path,
    evaluation: &mut Evaluation<'_>,
    test: impl Fn(ValueRef<'_>, &mut Evaluation<'_>) -> bool,
) -> bool {
    any_value(subject, path, Leaves::Whole, evaluation, |value, outer, evaluation| {
        let Some(ValueRef::Array(array)) = value else { return false };
        let before = evaluation.position;
        let found = array.iter().position(|element| !evaluation.goes_on(1) || test(element, evaluation));
        // A position within an element is not a position in this array.
        evaluation.position = if found.is_some() { outer.or(found) } else { before };
        found.is_some()
    })
}
