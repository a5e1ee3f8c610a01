//! `$in` and `$nin`: equality with one of several values, which may include regexes.

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
    // Memory for a long list is requested once, and the list is not copied while it grows.
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

/// Sorts values and removes duplicates.
fn sort(values: &mut Vec<Value>, parser: &Parser<'_>) -> Result<()> {
    let integer = |value: &Value| match value {
        Value::Int32(number) => Some(i64::from(*number)),
        Value::Int64(number) => Some(*number),
        _ => None,
    };
    // Most long lists hold integers, and comparing these as general values would dominate the planning time.
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
        // A stable sort needs as much memory again.
        parser.will_take(size_of_val(values.as_slice()))?;
        values.sort_by(|a, b| strings.compare(a.as_ref(), b.as_ref()));
    }
    values.dedup_by(|a, b| strings.equal(a.as_ref(), b.as_ref()));
    Ok(())
}

/// Simplifies a list with one value to an equality or a regex match, as the planner and explain expect it.
fn simplest(operand: &Operand<'_>, mut values: Vec<Value>, mut regexes: Vec<Regex>) -> Expression {
    let path = operand.path.clone();
    match (values.len(), regexes.len()) {
        (1, 0) => Expression::equal(path, values.remove(0)),
        (0, 1) => Expression::Regex { path, regex: regexes.remove(0) },
        _ => Expression::In { path, values: Arc::new(values), regexes },
    }
}

/// Whether the list contains `value`, or a missing value.
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
