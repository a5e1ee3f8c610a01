//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: comparisons within the operand's type bracket.

use super::FieldOperator;
use crate::expression::{Comparison, Expression};
use crate::parse::Operand;
use crate::path::Path;
use bunko_bson::{StringOrder, StringUse, ValueRef, order};
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
pub(crate) fn equal(path: &Path, value: ValueRef<'_>) -> Result<Expression> {
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
    Ok(Expression::Compare { path: path.clone(), op, value: value.to_value() })
}

/// Whether `value`, or a missing value, compares with `operand` this way.
#[inline]
pub(crate) fn matches(
    op: Comparison,
    value: Option<ValueRef<'_>>,
    operand: ValueRef<'_>,
    strings: &StringOrder,
) -> bool {
    match (value, operand) {
        (Some(ValueRef::Int32(value)), ValueRef::Int32(operand)) => op.holds(value.cmp(&operand)),
        (Some(ValueRef::String(value)), ValueRef::String(operand)) => op.holds(strings.compare_strings(value, operand)),
        (Some(ValueRef::ObjectId(value)), ValueRef::ObjectId(operand)) => op.holds(value.0.cmp(&operand.0)),
        (Some(value), operand) => matches_present(op, value, operand, strings),
        // A missing value equals null, and is beyond neither end of the order.
        (None, ValueRef::Null) => op.includes_equality(),
        (None, operand) => within_ends(op, operand),
    }
}

fn matches_present(op: Comparison, value: ValueRef<'_>, operand: ValueRef<'_>, strings: &StringOrder) -> bool {
    if order::rank(value.kind()) != order::rank(operand.kind()) {
        return within_ends(op, operand);
    }
    match (is_nan(value), is_nan(operand)) {
        (false, false) => op.holds(strings.compare(value, operand)),
        // NaN equals itself and is neither less nor greater than any number.
        (value, operand) => value && operand && op.includes_equality(),
    }
}

/// Whether a value of another type satisfies a comparison with `MinKey` or `MaxKey`: all other values are between them.
/// Other operands only match their own type bracket.
fn within_ends(op: Comparison, operand: ValueRef<'_>) -> bool {
    match operand {
        ValueRef::MinKey => matches!(op, Comparison::Gt | Comparison::Gte),
        ValueRef::MaxKey => matches!(op, Comparison::Lt | Comparison::Lte),
        _ => false,
    }
}

fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(number) => number.is_nan(),
        ValueRef::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

/// Whether two values are equal in the sense of `$eq`.
pub(crate) fn equals(value: ValueRef<'_>, operand: ValueRef<'_>, strings: &StringOrder) -> bool {
    matches(Comparison::Eq, Some(value), operand, strings)
}
