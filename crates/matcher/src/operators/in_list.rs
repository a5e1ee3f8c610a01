//! `$in` and `$nin`: equality with one of several values, regexes among them.

use super::FieldOperator;
use super::regex::Regex;
use crate::evaluate::Evaluation;
use crate::expression::Expression;
use crate::parse::{Operand, Parser, holds_operators};
use bunko_bson::{StringUse, Value, ValueRef};
use bunko_errors::{Failure, Result};
use std::sync::Arc;

pub(crate) const IN: FieldOperator = FieldOperator { name: "$in", strings: StringUse::Collated, parse };
pub(crate) const NIN: FieldOperator = FieldOperator {
    name: "$nin",
    strings: StringUse::Collated,
    parse: |parser, operand| Ok(Expression::not(parse(parser, operand)?)),
};

fn parse(parser: &Parser<'_>, operand: &Operand<'_>) -> Result<Expression> {
    let ValueRef::Array(list) = operand.value else {
        return Err(Failure::bad_value(format!("{} needs an array", operand.name)));
    };
    // A long list is asked for once, and is not copied while it grows.
    let count = list.iter().count();
    parser.will_take(count * size_of::<Value>())?;
    let (mut values, mut regexes) = (Vec::with_capacity(count), Vec::new());
    for value in list.iter() {
        parser.count(1)?;
        match value {
            ValueRef::Document(document) if holds_operators(document) => {
                return Err(Failure::bad_value("cannot nest $ under $in"));
            }
            ValueRef::Undefined => return Err(Failure::bad_value("InMatchExpression equality cannot be undefined")),
            ValueRef::Regex { pattern, options } => {
                parser.count_condition()?;
                regexes.push(Regex::new(pattern, options)?);
            }
            value => values.push(value.to_value()),
        }
    }
    sort(&mut values, parser)?;
    Ok(simplest(operand, values, regexes))
}

/// Brings values into their order, each once.
fn sort(values: &mut Vec<Value>, parser: &Parser<'_>) -> Result<()> {
    let integer = |value: &Value| match value {
        Value::Int32(number) => Some(i64::from(*number)),
        Value::Int64(number) => Some(*number),
        _ => None,
    };
    // Long lists are mostly of integers, and comparing these as any values takes most of the time of such a query's plan.
    if values.iter().all(|value| integer(value).is_some()) {
        if !values.is_sorted_by_key(integer) {
            parser.will_take(size_of_val(values.as_slice()))?;
            values.sort_by_key(integer);
        }
        values.dedup_by_key(|value| integer(value));
        return Ok(());
    }
    let strings = parser.compiler.strings();
    if !values.is_sorted_by(|a, b| strings.compare(a.as_ref(), b.as_ref()).is_le()) {
        // A sort that keeps equal values in their order takes as much again for a moment.
        parser.will_take(size_of_val(values.as_slice()))?;
        values.sort_by(|a, b| strings.compare(a.as_ref(), b.as_ref()));
    }
    values.dedup_by(|a, b| strings.equal(a.as_ref(), b.as_ref()));
    Ok(())
}

/// A list of one is an equality or a regex match, as the planner and explain see it.
fn simplest(operand: &Operand<'_>, mut values: Vec<Value>, mut regexes: Vec<Regex>) -> Expression {
    let path = operand.path.clone();
    match (values.len(), regexes.len()) {
        (1, 0) => Expression::equal(path, values.remove(0)),
        (0, 1) => Expression::Regex { path, regex: regexes.remove(0) },
        _ => Expression::In { path, values: Arc::new(values), regexes },
    }
}

/// Whether `value`, or a missing one, is in the list.
pub(crate) fn matches(
    values: &[Value],
    regexes: &[Regex],
    value: Option<ValueRef<'_>>,
    evaluation: &mut Evaluation<'_>,
) -> bool {
    let sought = value.unwrap_or(ValueRef::Null);
    values.binary_search_by(|candidate| evaluation.strings.compare(candidate.as_ref(), sought)).is_ok()
        || regexes.iter().any(|regex| evaluation.regex(regex, value))
}
