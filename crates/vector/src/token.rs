//! What filters compare: values as bytes in the order of the values, each behind its class. Values of different classes are
//! never equal, and none is greater.

use crate::dotted;
use bunko_bson::key_string::{self, Direction};
use bunko_bson::{BinarySubtype, DocumentRef, ValueRef};
use std::ops::Bound;

/// That the path leads to something, be it a value that is compared or not.
pub(crate) const PRESENT: &[u8] = &[0];

/// A kind of values that are compared with each other.
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
    /// The class of a value; none for one that is not compared.
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

/// The bytes of a value; none for one that is not compared.
pub(crate) fn of(value: ValueRef<'_>) -> Option<Box<[u8]>> {
    let mut token = vec![Class::of(value)? as u8];
    key_string::append(&mut token, value, Direction::Ascending);
    Some(token.into())
}

/// The first bytes of a class, and of the next one.
pub(crate) fn class_bounds(token: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let class = token.first().copied().unwrap_or_default();
    (Bound::Included(vec![class]), Bound::Excluded(vec![class + 1]))
}

/// The tokens that a document has at a path: those of the value, and of the elements of an array.
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
