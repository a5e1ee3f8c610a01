//! `$in` and `$nin`: equality with one of several values, which may include regexes.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use crate::operands::Regex;
use crate::parser::{Operand, Parser, holds_operators};
use bunko_bson::{StringUse, Value, ValueRef};
use bunko_errors::{Failure, Result};

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
    Ok(Condition::one_of(values, regexes).at(operand.path))
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
        // A stable sort takes as much memory again as the list.
        parser.will_take(size_of_val(values.as_slice()))?;
        values.sort_by(|a, b| strings.compare(a.as_ref(), b.as_ref()));
    }
    values.dedup_by(|a, b| strings.equal(a.as_ref(), b.as_ref()));
    Ok(())
}
