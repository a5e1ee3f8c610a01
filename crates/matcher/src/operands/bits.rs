//! Tests of bits in integers and binary data.

use crate::integer;
use bunko_bson::{ArrayRef, ValueRef, number};
use bunko_errors::{Failure, Result};

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
            Self::AllSet => "$bitsAllSet",
            Self::AllClear => "$bitsAllClear",
            Self::AnySet => "$bitsAnySet",
            Self::AnyClear => "$bitsAnyClear",
        }
    }

    /// Whether `value` is an integer of any type, or binary data, whose bits pass the test.
    pub(crate) fn matches(self, mask: &BitMask, value: Option<ValueRef<'_>>) -> bool {
        match value {
            Some(ValueRef::Binary { bytes, .. }) => self.passes(mask, |position| bit_of_bytes(bytes, position)),
            // Beyond its width, a number repeats its sign bit.
            Some(value) if value.is_number() => number::as_i64_exact(value)
                .is_some_and(|number| self.passes(mask, |position| number >> position.min(63) & 1 == 1)),
            _ => false,
        }
    }

    fn passes(self, mask: &BitMask, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = mask.0.iter();
        match self {
            Self::AllSet => positions.all(|&position| is_set(position)),
            Self::AllClear => !positions.any(|&position| is_set(position)),
            Self::AnySet => positions.any(|&position| is_set(position)),
            Self::AnyClear => !positions.all(|&position| is_set(position)),
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

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self((0..bytes.len() as u32 * 8).filter(|&position| bit_of_bytes(bytes, position)).collect())
    }

    pub(crate) fn of_positions(list: ArrayRef<'_>) -> Result<Self> {
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

/// The bit at a position of binary data, which is little-endian; 0 beyond its end.
fn bit_of_bytes(bytes: &[u8], position: u32) -> bool {
    bytes.get(position as usize / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}
