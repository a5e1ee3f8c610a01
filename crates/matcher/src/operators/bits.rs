//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: bits of integers and binary data.

use super::{FieldOperator, integer};
use crate::expression::Expression;
use crate::parse::{Operand, Parser};
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, StringUse, ValueRef, number};
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

/// The required state of a mask's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BitTest {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl BitTest {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllSet => ALL_SET.name,
            Self::AllClear => ALL_CLEAR.name,
            Self::AnySet => ANY_SET.name,
            Self::AnyClear => ANY_CLEAR.name,
        }
    }
}

/// The bits to test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitMask(Vec<u32>);

impl BitMask {
    /// Bit positions, ascending; 0 is the least significant bit.
    pub fn positions(&self) -> &[u32] {
        &self.0
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self((0..bytes.len() as u32 * 8).filter(|&position| bit_of_bytes(bytes, position)).collect())
    }

    fn of_positions(list: ArrayRef<'_>) -> Result<Self> {
        let mut positions = list
            .as_document()
            .iter()
            .map(|element| integer::non_negative_i32(element.name, element.value))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|reason| Failure::bad_value(format!("Failed to parse bit position. {reason}")))?;
        positions.sort_unstable();
        positions.dedup();
        Ok(Self(positions))
    }
}

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
    Ok(Expression::Bits { path: operand.path.clone(), test, mask })
}

/// Whether `value` is an integer of any type, or binary data, whose bits pass the test.
pub(crate) fn matches(test: BitTest, mask: &BitMask, value: Option<ValueRef<'_>>) -> bool {
    match value {
        Some(ValueRef::Binary { bytes, .. }) => passes(test, mask, |position| bit_of_bytes(bytes, position)),
        // Beyond its width, a number repeats its sign bit.
        Some(value) if value.is_number() => number::as_i64_exact(value)
            .is_some_and(|number| passes(test, mask, |position| number >> position.min(63) & 1 == 1)),
        _ => false,
    }
}

fn passes(test: BitTest, mask: &BitMask, is_set: impl Fn(u32) -> bool) -> bool {
    let mut positions = mask.0.iter();
    match test {
        BitTest::AllSet => positions.all(|&position| is_set(position)),
        BitTest::AllClear => !positions.any(|&position| is_set(position)),
        BitTest::AnySet => positions.any(|&position| is_set(position)),
        BitTest::AnyClear => !positions.all(|&position| is_set(position)),
    }
}

/// The bit at a position of binary data, which is little-endian; 0 beyond its end.
fn bit_of_bytes(bytes: &[u8], position: u32) -> bool {
    bytes.get(position as usize / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}
