//! `$elemMatch`: one array element satisfies all conditions.

use super::{FieldOperator, is_top_level};
use crate::evaluate::{Evaluation, any_value};
use crate::expression::Expression;
use crate::parse::{Parser, is_operator};
use crate::path::{AsElement, Leaves, Path, Subject};
use bunko_bson::{DocumentRef, StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const ELEM_MATCH: FieldOperator = FieldOperator {
    name: "$elemMatch",
    strings: StringUse::Collated,
    parse: |parser, operand| parse(parser, operand.path, operand.value),
};

/// Parses either form: operators apply to the element itself, any other document is a filter on its fields.
pub(crate) fn parse(parser: &Parser<'_>, path: &Path, operand: ValueRef<'_>) -> Result<Expression> {
    let ValueRef::Document(condition) = operand else {
        return Err(Failure::bad_value("$elemMatch needs an Object"));
    };
    let (parser, path) = (parser.inside_element(), path.clone());
    if is_on_values(condition) {
        let condition = Box::new(parser.operators(&Path::itself(), condition)?);
        return Ok(Expression::ElemMatchValue { path, condition });
    }
    Ok(Expression::ElemMatchObject { path, filter: Box::new(parser.filter(condition)?) })
}

fn is_on_values(condition: DocumentRef<'_>) -> bool {
    condition.first().is_some_and(|first| is_operator(first.name) && !is_top_level(first.name))
}

/// Whether an element satisfies the filter of the object form. An array counts as a document.
pub(crate) fn is_object(filter: &Expression, element: ValueRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
    match element {
        ValueRef::Document(document) => filter.evaluate(document, evaluation),
        ValueRef::Array(array) => filter.evaluate(array.as_document(), evaluation),
        _ => false,
    }
}

/// Whether some document in the array at the path matches the filter.
pub(crate) fn matches_object<S: Subject>(
    subject: S,
    path: &Path,
    filter: &Expression,
    evaluation: &mut Evaluation<'_>,
) -> bool {
    matches_element(subject, path, evaluation, |element, evaluation| is_object(filter, element, evaluation))
}

/// Whether some element of the array at the path satisfies the condition.
pub(crate) fn matches_value<S: Subject>(
    subject: S,
    path: &Path,
    condition: &Expression,
    evaluation: &mut Evaluation<'_>,
) -> bool {
    matches_element(subject, path, evaluation, |element, evaluation| condition.evaluate(AsElement(element), evaluation))
}

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
