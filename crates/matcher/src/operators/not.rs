//! `$not`: negates other operators on one field; missing fields match too.

use super::{FieldOperator, literal};
use crate::expression::Expression;
use crate::parser::{Operand, Parser};
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const NOT: FieldOperator = FieldOperator { name: "$not", strings: StringUse::Collated, parse };

fn parse(parser: &Parser<'_>, operand: &Operand<'_>) -> Result<Expression> {
    let negated = match operand.value {
        ValueRef::Regex { .. } => literal(operand.path, operand.value)?,
        ValueRef::Document(condition) if condition.is_empty() => {
            return Err(Failure::bad_value("$not cannot be empty"));
        }
        ValueRef::Document(condition) => parser.operators(operand.path, condition)?,
        _ => return Err(Failure::bad_value("$not needs a regex or a document")),
    };
    Ok(Expression::not(negated))
}
