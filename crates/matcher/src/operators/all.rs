//! `$all`: the array contains all of these values, or a match for each `$elemMatch`.

use super::{FieldOperator, elem_match, is_condition, literal};
use crate::expression::{Condition, Expression};
use crate::parser::{Operand, Parser};
use bunko_bson::{ArrayRef, DocumentRef, StringUse, ValueRef};
use bunko_errors::{Failure, Result};
use std::sync::Arc;

pub(crate) const ALL: FieldOperator = FieldOperator { name: "$all", strings: StringUse::Collated, parse };

fn parse(parser: &Parser<'_>, operand: &Operand<'_>) -> Result<Expression> {
    let ValueRef::Array(list) = operand.value else {
        return Err(Failure::bad_value("$all needs an array"));
    };
    if list.is_empty() {
        // No document matches, but array filters need the path.
        return Ok(Condition::In { values: Arc::default(), regexes: Vec::new() }.at(operand.path));
    }
    let children = match list.iter().next() {
        Some(first) if elem_match_operand(first).is_some() => all_elem_match(parser, operand, list),
        _ => parser.gathered(list.iter().map(|value| one(parser, operand, value))),
    };
    Ok(Expression::and(children?))
}

fn one(parser: &Parser<'_>, operand: &Operand<'_>, value: ValueRef<'_>) -> Result<Expression> {
    parser.count_condition()?;
    let first = value.as_document().and_then(DocumentRef::first);
    if first.is_some_and(|first| is_condition(first.name)) {
        return Err(Failure::bad_value("no $ expressions in $all"));
    }
    literal(operand.path, value)
}

fn all_elem_match(parser: &Parser<'_>, operand: &Operand<'_>, list: ArrayRef<'_>) -> Result<Vec<Expression>> {
    parser.gathered(list.iter().map(|value| {
        parser.count_condition()?;
        if value.as_document().is_none() {
            return Err(Failure::bad_value("$all/$elemMatch has to be an object"));
        }
        let Some(condition) = elem_match_operand(value) else {
            return Err(Failure::bad_value("$all/$elemMatch has to be consistent"));
        };
        elem_match::parse(parser, operand.path, condition)
    }))
}

/// The operand of `{$elemMatch: ...}`.
fn elem_match_operand(value: ValueRef<'_>) -> Option<ValueRef<'_>> {
    let first = value.as_document()?.first()?;
    (first.name == elem_match::ELEM_MATCH.name).then_some(first.value)
}
