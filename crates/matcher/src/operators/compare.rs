//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: comparisons within the operand's type bracket.

use super::{FieldOperator, regex};
use crate::comparison::Comparison;
use crate::expression::{Condition, Expression};
use crate::parser::Operand;
use crate::path::Path;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const EQ: FieldOperator =
    FieldOperator { name: "$eq", strings: StringUse::Collated, parse: |_, operand| equal(operand.path, operand.value) };

pub(crate) const NE: FieldOperator = FieldOperator {
    name: "$ne",
    strings: StringUse::Collated,
    parse: |_, operand| match operand.value {
        ValueRef::Regex { .. } => Err(Failure::bad_value("Can't have regex as arg to $ne.")),
        value => Ok(Expression::not(equal(operand.path, value)?)),
    },
};

pub(crate) const GT: FieldOperator = FieldOperator {
    name: "$gt",
    strings: StringUse::Collated,
    parse: |_, operand| inequality(operand, Comparison::Gt),
};
pub(crate) const GTE: FieldOperator = FieldOperator {
    name: "$gte",
    strings: StringUse::Collated,
    parse: |_, operand| inequality(operand, Comparison::Gte),
};
pub(crate) const LT: FieldOperator = FieldOperator {
    name: "$lt",
    strings: StringUse::Collated,
    parse: |_, operand| inequality(operand, Comparison::Lt),
};
pub(crate) const LTE: FieldOperator = FieldOperator {
    name: "$lte",
    strings: StringUse::Collated,
    parse: |_, operand| inequality(operand, Comparison::Lte),
};

/// `{path: value}` and `{path: {$eq: value}}`; a regex here is compared as a value.
fn equal(path: &Path, value: ValueRef<'_>) -> Result<Expression> {
    comparison(path, Comparison::Eq, value)
}

fn inequality(operand: &Operand<'_>, op: Comparison) -> Result<Expression> {
    if let ValueRef::Regex { .. } = operand.value {
        let path = operand.path;
        return Err(Failure::bad_value(format!("Can't have RegEx as arg to predicate over field '{path}'.")));
    }
    comparison(operand.path, op, operand.value)
}

fn comparison(path: &Path, op: Comparison, value: ValueRef<'_>) -> Result<Expression> {
    if let ValueRef::Undefined = value {
        return Err(Failure::bad_value("cannot compare to undefined"));
    }
    Ok(Condition::Compare(op, value.to_value()).at(path))
}

/// A plain value in place of operators: a regex matches, any other value is compared.
pub(crate) fn literal(path: &Path, value: ValueRef<'_>) -> Result<Expression> {
    match value {
        ValueRef::Regex { pattern, options } => regex::expression(path, pattern, options),
        value => equal(path, value),
    }
}
