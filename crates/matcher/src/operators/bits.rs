//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: bits of integers and binary data.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use crate::integer;
use crate::operands::{BitMask, BitTest};
use crate::parser::{Operand, Parser};
use bunko_bson::text::ValueText;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const ALL_SET: FieldOperator = FieldOperator {
    name: "$bitsAllSet",
    strings: StringUse::AsBytes,
    parse: |parser, operand| parse(parser, operand, BitTest::AllSet),
};
pub(crate) const ALL_CLEAR: FieldOperator = FieldOperator {
    name: "$bitsAllClear",
    strings: StringUse::AsBytes,
    parse: |parser, operand| parse(parser, operand, BitTest::AllClear),
};
pub(crate) const ANY_SET: FieldOperator = FieldOperator {
    name: "$bitsAnySet",
    strings: StringUse::AsBytes,
    parse: |parser, operand| parse(parser, operand, BitTest::AnySet),
};
pub(crate) const ANY_CLEAR: FieldOperator = FieldOperator {
    name: "$bitsAnyClear",
    strings: StringUse::AsBytes,
    parse: |parser, operand| parse(parser, operand, BitTest::AnyClear),
};

fn parse(parser: &Parser<'_>, operand: &Operand<'_>, test: BitTest) -> Result<Expression> {
    let mask = match operand.value {
        ValueRef::Array(list) => {
            parser.will_take(list.as_document().len_bytes())?;
            BitMask::of_positions(list)?
        }
        ValueRef::Binary { bytes, .. } => {
            let set: usize = bytes.iter().map(|byte| byte.count_ones() as usize).sum();
            // The list of positions may double while it grows.
            parser.will_take(3 * set * size_of::<u32>())?;
            BitMask::of_bytes(bytes)
        }
        value if value.is_number() => {
            let mask = integer::non_negative(operand.name, value).map_err(Failure::failed_to_parse)?;
            BitMask::of_bytes(&mask.to_le_bytes())
        }
        value => {
            return Err(Failure::bad_value(format!(
                "{} takes an Array, a number, or a BinData but received: {}: {}",
                operand.path,
                operand.name,
                ValueText(value)
            )));
        }
    };
    Ok(Condition::Bits(test, mask).at(operand.path))
}
