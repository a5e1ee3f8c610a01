//! Sets of types.

use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, Type, ValueRef, number};
use bunko_errors::{Failure, Result};

const NUMBERS: [Type; 4] = [Type::Double, Type::Int32, Type::Int64, Type::Decimal128];

/// A set of types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeSet {
    types: Vec<Type>,
    /// Whether the set has the alias `"number"`, which explain shows again.
    all_numbers: bool,
}

impl TypeSet {
    /// Whether the set contains the type.
    pub fn contains(&self, kind: Type) -> bool {
        self.types.contains(&kind) || self.all_numbers && NUMBERS.contains(&kind)
    }

    /// Whether `other` contains all types of this set.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let numbers: &[Type] = if self.all_numbers { &NUMBERS } else { &[] };
        self.types.iter().chain(numbers).all(|&kind| other.contains(kind))
    }

    /// The types as an operand of `$type`: single types in ascending order, then `"number"`.
    pub fn to_array(&self) -> ArrayBuf {
        let mut array: ArrayBuf = self.types.iter().map(|&kind| code(kind)).collect();
        if self.all_numbers {
            array.push("number");
        }
        array
    }

    /// Adds a type by number or alias; returns whether it is new.
    /// # Errors
    /// `BadValue` for an unknown type, `TypeMismatch` for another value.
    pub(crate) fn insert(&mut self, value: ValueRef<'_>) -> Result<bool> {
        if let ValueRef::String("number") = value {
            return Ok(!std::mem::replace(&mut self.all_numbers, true));
        }
        let kind = match value {
            ValueRef::String(alias) => {
                by_alias(alias).ok_or_else(|| Failure::bad_value(format!("Unknown type name alias: {alias}")))?
            }
            value if value.is_number() => by_number(value)?,
            _ => return Err(Failure::type_mismatch("type must be represented as a number or a string")),
        };
        let is_new = !self.types.contains(&kind);
        if is_new {
            self.types.push(kind);
        }
        Ok(is_new)
    }

    /// Sorts the types of the set in ascending order.
    pub(crate) fn sorted(mut self) -> Self {
        self.types.sort_by_key(|&kind| code(kind));
        self
    }
}

/// A type's number in queries: `MinKey` is -1 rather than its byte, 255.
fn code(kind: Type) -> i32 {
    i32::from(kind as u8 as i8)
}

fn by_alias(alias: &str) -> Option<Type> {
    (0..=u8::MAX).filter_map(Type::from_byte).find(|kind| kind.alias() == alias)
}

fn by_number(value: ValueRef<'_>) -> Result<Type> {
    let exact = number::as_i64_exact(value);
    if exact == Some(0) {
        return Err(Failure::bad_value("Invalid numerical type code: 0. Instead use {$exists:false}."));
    }
    exact
        .and_then(|number| i8::try_from(number).ok())
        .and_then(|number| Type::from_byte(number as u8))
        .ok_or_else(|| Failure::bad_value(format!("Invalid numerical type code: {}", ValueText(value))))
}
