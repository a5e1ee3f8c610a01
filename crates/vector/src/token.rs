//! Tokens, which filters compare: values as bytes in the order of the values, each with its class in front. Values of
//! different classes are never equal, and none is greater.

use crate::dotted;
use bunko_bson::key_string::{self, Direction};
use bunko_bson::{BinarySubtype, DocumentRef, ValueRef};
use std::ops::Bound;

/// Token of every document that has a value at the path, whether that value can be compared or not.
pub(crate) const PRESENT: &[u8] = &[0];

/// A class of values that can be compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    Null = 1,
    Number,
    String,
    Boolean,
    DateTime,
    ObjectId,
    Uuid,
}

impl Class {
    /// The class of a value; `None` for a value that cannot be compared.
    pub(crate) fn of(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) => Self::Number,
            ValueRef::String(_) => Self::String,
            ValueRef::Boolean(_) => Self::Boolean,
            ValueRef::DateTime(_) => Self::DateTime,
            ValueRef::ObjectId(_) => Self::ObjectId,
            ValueRef::Binary { subtype: BinarySubtype::UUID, .. } => Self::Uuid,
            _ => return None,
        })
    }
}

/// The token of a value; `None` for a value that cannot be compared.
pub(crate) fn of(value: ValueRef<'_>) -> Option<Box<[u8]>> {
    let mut token = vec![Class::of(value)? as u8];
    key_string::append(&mut token, value, Direction::Ascending);
    Some(token.into())
}

/// Bounds that contain exactly the tokens with this token's class.
pub(crate) fn class_bounds(token: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let class = token.first().copied().unwrap_or_default();
    (Bound::Included(vec![class]), Bound::Excluded(vec![class + 1]))
}

/// The tokens that a document has at a path: of the value, or of an array's elements, and [`PRESENT`].
pub(crate) fn of_document(document: DocumentRef<'_>, path: &str) -> Vec<Box<[u8]>> {
    let mut tokens = Vec::new();
    dotted::through_arrays(document, path, &mut |value| {
        if tokens.is_empty() {
            tokens.push(PRESENT.into());
        }
        match value {
            ValueRef::Array(array) => tokens.extend(array.iter().filter_map(of)),
            value => tokens.extend(of(value)),
        }
    });
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}
