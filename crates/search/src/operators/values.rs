//! Values that operators compare with the values of fields.

use crate::schema::Schema;
use crate::unit::Field;
use crate::{FieldType, NormalizerName, Reader, Refusal};
use bunko_bson::{BinarySubtype, ObjectId, ValueRef, number};
use bunko_errors::Result;
use std::cmp::Ordering;

/// A value that is searched for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wanted {
    Boolean(bool),
    ObjectId(ObjectId),
    Number(f64),
    Date(i64),
    Text(String),
    Uuid(Vec<u8>),
    Null,
}

impl Wanted {
    /// Reads a value of any type that operators compare.
    pub fn read(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Boolean(value) => Self::Boolean(value),
            ValueRef::ObjectId(value) => Self::ObjectId(value),
            ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) => Self::Number(number::as_f64(value)?),
            ValueRef::DateTime(value) => Self::Date(value),
            ValueRef::String(value) => Self::Text(value.to_owned()),
            ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } => Self::Uuid(bytes.to_owned()),
            ValueRef::Null => Self::Null,
            _ => return None,
        })
    }

    /// Whether both are of one type.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Compares a field's value with this one; `None` if the types differ, or the index does not have the field in this
    /// type.
    pub fn compare(&self, field: &Field<'_>) -> Option<Ordering> {
        let types = field.types;
        match (self, field.value) {
            (Self::Boolean(own), ValueRef::Boolean(value)) => {
                types.has(|kind| matches!(kind, FieldType::Boolean)).then(|| value.cmp(own))
            }
            (Self::ObjectId(own), ValueRef::ObjectId(value)) => {
                types.has(|kind| matches!(kind, FieldType::ObjectId)).then(|| value.cmp(own))
            }
            (Self::Number(own), value) => number_of(field, value)?.partial_cmp(own),
            (Self::Date(own), ValueRef::DateTime(value)) => {
                types.has(|kind| matches!(kind, FieldType::Date)).then(|| value.cmp(own))
            }
            (Self::Text(own), ValueRef::String(value)) => Some(match types.token()? {
                NormalizerName::None => value.cmp(own),
                NormalizerName::Lowercase => value.to_lowercase().as_str().cmp(&own.to_lowercase()),
            }),
            (Self::Uuid(own), ValueRef::Binary { subtype: BinarySubtype::UUID, bytes }) => {
                types.has(|kind| matches!(kind, FieldType::Uuid)).then(|| bytes.cmp(own.as_slice()))
            }
            (Self::Null, ValueRef::Null) => Some(Ordering::Equal),
            _ => None,
        }
    }
}

/// The number of a field, if the index has it.
pub(crate) fn number_of(field: &Field<'_>, value: ValueRef<'_>) -> Option<f64> {
    let has = |wants_integers: bool| match field.types {
        crate::schema::Types::Dynamic => true,
        types => types.mapped().iter().any(|kind| match kind {
            FieldType::Number { integers, doubles } => {
                if wants_integers {
                    *integers
                } else {
                    *doubles
                }
            }
            FieldType::NumberFacet => true,
            _ => false,
        }),
    };
    match value {
        ValueRef::Int32(_) | ValueRef::Int64(_) => has(true).then(|| number::as_f64(value)).flatten(),
        ValueRef::Double(value) => has(false).then_some(value),
        _ => None,
    }
}

/// Refuses a whole string if the index has no whole strings at a path.
/// # Errors
/// `UnknownError`.
pub(super) fn check_token(schema: &Schema, path: &str) -> Result<()> {
    if schema.types(path).token().is_none() {
        let message = format!("Path '{path}' needs to be indexed as token");
        return Err(Refusal::Query.failure(message));
    }
    Ok(())
}

/// Reads one value of a field.
/// # Errors
/// If its type cannot be searched for.
pub(super) fn wanted(reader: &Reader<'_>, name: &str, value: ValueRef<'_>) -> Result<Wanted> {
    Wanted::read(value)
        .ok_or_else(|| reader.wrong(name, "must be a boolean, objectId, number, string, date, uuid, or null"))
}
