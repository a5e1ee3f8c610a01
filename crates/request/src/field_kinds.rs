//! Kinds of fields: the values that a field allows, and MongoDB's errors for the others.
//!
//! A command's entry in the table gives the kind of each of its fields. The fields of a request are checked in their
//! order in the request, before the command runs: name, type, bounds and choices of one field come before those of the
//! next. A mistyped option is therefore refused for its type, even if another option makes it meaningless. Source: the
//! replies of MongoDB 8.2, whose parsers are generated from such tables.

use bunko_bson::{ArrayRef, BinarySubtype, EncodedElement, Type, ValueRef, number};
use bunko_errors::{Failure, Result};

/// A field of a command, or of a document inside a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name.
    pub name: &'static str,
    /// The values that the field allows.
    pub kind: Kind,
}

/// The values that a field allows. Unless a kind says otherwise, null and undefined stand for a missing field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any value at all.
    Any,
    /// Values that the command's own parser checks.
    Own,
    /// A boolean.
    Boolean,
    /// A boolean, not null.
    Flag,
    /// A boolean, or a number of any type that stands for a boolean.
    BooleanLike,
    /// A number of any type. Doubles are truncated, decimals rounded, and the nearest 64-bit integer is taken.
    Number,
    /// A number between two bounds, both included.
    NumberWithin(i64, i64),
    /// A 32-bit integer.
    Int,
    /// A 64-bit integer.
    Long,
    /// A string.
    Text,
    /// A string from a list.
    Choice(&'static [&'static str]),
    /// A document.
    Object,
    /// A document, not null.
    ObjectOnly,
    /// An array.
    Array,
    /// An array, not null.
    ArrayOnly,
    /// An array of documents. Nulls in it are skipped, as in the next two kinds.
    Objects,
    /// An array of strings.
    Texts,
    /// An array of 64-bit integers.
    Longs,
    /// A UUID.
    Uuid,
    /// A timestamp.
    Timestamp,
    /// An index, given by its name or its keys, not null.
    Hint,
    /// A value of one of the listed types, not null.
    OneOf(&'static [Type]),
}

/// A field that must not be negative.
pub const NOT_NEGATIVE: Kind = Kind::NumberWithin(0, i64::MAX);
/// A field that must be positive.
pub const POSITIVE: Kind = Kind::NumberWithin(1, i64::MAX);

const NUMBERS: &[Type] = &[Type::Int64, Type::Int32, Type::Decimal128, Type::Double];

/// A field of a command's table.
pub const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind }
}

impl Field {
    /// Checks a field in the command or document `place`.
    /// # Errors
    /// `TypeMismatch`; `BadValue` for a number or a string that is not allowed, `FailedToParse` for a hint.
    #[inline]
    pub fn check(&self, place: &str, element: &EncodedElement<'_>) -> Result<()> {
        if self.kind.takes_all_of(element.kind()) {
            return Ok(());
        }
        element.value().map_or(Ok(()), |value| self.check_value(place, value))
    }

    /// As `check`, for a value.
    /// # Errors
    /// As `check`.
    pub fn check_value(&self, place: &str, value: ValueRef<'_>) -> Result<()> {
        if matches!(self.kind, Kind::Any | Kind::Own) || value.is_nullish() && self.kind.passes_nulls() {
            return Ok(());
        }
        match (self.kind, value) {
            (Kind::Flag, _) => self.check_only(value, Type::Boolean, "should be a boolean value, but found"),
            (Kind::ObjectOnly, _) => self.check_only(value, Type::Document, "should be an object, but found"),
            (Kind::Hint, ValueRef::String(_) | ValueRef::Document(_)) => Ok(()),
            (Kind::Hint, _) => Err(Failure::failed_to_parse("Hint must be a string or an object")),
            (Kind::Uuid, ValueRef::Binary { subtype, .. }) if subtype != BinarySubtype::UUID => {
                let place = format!("{place}.{}", self.name);
                let message = format!("BSON field '{place}' is the wrong binData type, expected type 'UUID'");
                Err(Failure::type_mismatch(message))
            }
            (Kind::Choice(choices), ValueRef::String(chosen)) if !choices.contains(&chosen) => {
                let message =
                    format!("Enumeration value '{chosen}' for field '{place}.{}' is not a valid value.", self.name);
                Err(Failure::bad_value(message))
            }
            (Kind::NumberWithin(min, max), _) if value.is_number() => self.check_bounds(value, min, max),
            (Kind::Objects, ValueRef::Array(array)) => self.check_elements(place, array, Type::Document),
            (Kind::Texts, ValueRef::Array(array)) => self.check_elements(place, array, Type::String),
            (Kind::Longs, ValueRef::Array(array)) => self.check_elements(place, array, Type::Int64),
            (kind, _) if kind.types().contains(&value.kind()) => Ok(()),
            (kind, _) => Err(mismatch(&format!("{place}.{}", self.name), value.kind(), kind.types())),
        }
    }

    fn check_only(&self, value: ValueRef<'_>, only: Type, expectation: &str) -> Result<()> {
        if value.kind() == only {
            return Ok(());
        }
        Err(Failure::type_mismatch(format!("Field '{}' {expectation}: {}", self.name, value.kind().alias())))
    }

    fn check_bounds(&self, value: ValueRef<'_>, min: i64, max: i64) -> Result<()> {
        let number = number::clamp_to_i64(value).unwrap_or(0);
        let bound = match number {
            _ if number < min => format!(">= {min}"),
            _ if number > max => format!("<= {max}"),
            _ => return Ok(()),
        };
        let name = self.name;
        Err(Failure::bad_value(format!("BSON field '{name}' value must be {bound}, actual value '{number}'")))
    }

    fn check_elements(&self, place: &str, array: ArrayRef<'_>, of: Type) -> Result<()> {
        let mut elements = array.iter().enumerate();
        match elements.find(|(_, element)| !element.is_nullish() && element.kind() != of) {
            None => Ok(()),
            Some((index, element)) => Err(mismatch(&format!("{place}.{}.{index}", self.name), element.kind(), &[of])),
        }
    }
}

impl Kind {
    /// Whether the kind allows every value of a type, so that the value need not be decoded.
    #[inline]
    fn takes_all_of(self, of: Type) -> bool {
        match self {
            Self::Any | Self::Own => true,
            Self::Boolean | Self::Flag => of == Type::Boolean,
            Self::Text => of == Type::String,
            Self::Object | Self::ObjectOnly => of == Type::Document,
            Self::Array | Self::ArrayOnly => of == Type::Array,
            _ => false,
        }
    }

    /// Whether null and undefined stand for a missing field.
    fn passes_nulls(self) -> bool {
        !matches!(self, Self::Flag | Self::ObjectOnly | Self::ArrayOnly | Self::Hint | Self::OneOf(_))
    }

    /// The allowed types, in MongoDB's order; empty for a kind that allows all.
    fn types(self) -> &'static [Type] {
        match self {
            Self::Any | Self::Own => &[],
            Self::Boolean | Self::Flag => &[Type::Boolean],
            Self::BooleanLike => &[Type::Boolean, Type::Int64, Type::Int32, Type::Decimal128, Type::Double],
            Self::Number | Self::NumberWithin(..) => NUMBERS,
            Self::Int => &[Type::Int32],
            Self::Long => &[Type::Int64],
            Self::Text | Self::Choice(_) => &[Type::String],
            Self::Object | Self::ObjectOnly => &[Type::Document],
            Self::Array | Self::ArrayOnly | Self::Objects | Self::Texts | Self::Longs => &[Type::Array],
            Self::Uuid => &[Type::Binary],
            Self::Timestamp => &[Type::Timestamp],
            Self::Hint => &[Type::String, Type::Document],
            Self::OneOf(types) => types,
        }
    }
}

/// The error for a value of the wrong type at `place`.
fn mismatch(place: &str, found: Type, expected: &[Type]) -> Failure {
    let expected = match expected {
        [only] => format!("type '{}'", only.alias()),
        several => {
            let names: Vec<_> = several.iter().map(|one| one.alias()).collect();
            format!("types '[{}]'", names.join(", "))
        }
    };
    let message = format!("BSON field '{place}' is the wrong type '{}', expected {expected}", found.alias());
    Failure::type_mismatch(message)
}
