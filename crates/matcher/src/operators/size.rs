//! `$size`: the number of elements of an array.

use super::FieldOperator;
use crate::expression::Condition;
use crate::integer;
use bunko_bson::StringUse;
use bunko_errors::Failure;

pub(crate) const SIZE: FieldOperator = FieldOperator {
    name: "$size",
    strings: StringUse::AsBytes,
    parse: |_, operand| {
        let size = integer::non_negative_i32(operand.name, operand.value)
            .map_err(|reason| Failure::bad_value(format!("Failed to parse $size. {reason}")))?;
        Ok(Condition::Size(size.into()).at(operand.path))
    },
};
