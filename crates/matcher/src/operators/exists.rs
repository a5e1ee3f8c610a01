//! `$exists`: whether the path leads to a value, null included.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use bunko_bson::{Decimal128, StringUse, ValueRef};

pub(crate) const EXISTS: FieldOperator = FieldOperator {
    name: "$exists",
    strings: StringUse::AsBytes,
    parse: |_, operand| {
        let exists = Condition::Exists.at(operand.path);
        Ok(if is_true(operand.value) { exists } else { Expression::not(exists) })
    },
};

/// Whether a value counts as true where a boolean is expected: all do except false, zero, null and undefined.
fn is_true(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Boolean(boolean) => boolean,
        ValueRef::Int32(number) => number != 0,
        ValueRef::Int64(number) => number != 0,
        ValueRef::Double(number) => number != 0.0,
        ValueRef::Decimal128(number) => is_nonzero(number),
        ValueRef::Null | ValueRef::Undefined => false,
        _ => true,
    }
}

fn is_nonzero(number: Decimal128) -> bool {
    number.to_f64() != 0.0
}
