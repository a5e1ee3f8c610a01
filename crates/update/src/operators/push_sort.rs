//! `$push`'s `$sort`: by whole elements, or by fields of elements.

use super::whole_number;
use crate::dotted_path::as_index;
use bunko_bson::{DocumentRef, ValueRef, order};
use bunko_errors::{Failure, Result};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    fn parse(value: ValueRef<'_>) -> Option<Self> {
        match whole_number(value)? {
            1 => Some(Self::Ascending),
            -1 => Some(Self::Descending),
            _ => None,
        }
    }

    fn apply(self, ordering: Ordering) -> Ordering {
        match self {
            Self::Ascending => ordering,
            Self::Descending => ordering.reverse(),
        }
    }
}

#[derive(Debug)]
pub(super) enum PushSort {
    WholeElements(Direction),
    /// By dotted paths, the first deciding first.
    Fields(Vec<(String, Direction)>),
}

impl PushSort {
    /// # Errors
    /// `BadValue` for anything but 1, -1, or a document of those.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        if let ValueRef::Document(pattern) = value {
            return parse_pattern(pattern).map(Self::Fields);
        }
        Direction::parse(value).map(Self::WholeElements).ok_or_else(|| {
            Failure::bad_value(
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
            )
        })
    }

    /// Sorts; equal elements keep their order.
    pub fn sort(&self, values: &mut [ValueRef<'_>]) {
        match self {
            Self::WholeElements(direction) => values.sort_by(|a, b| direction.apply(order::compare(*a, *b))),
            Self::Fields(fields) => values.sort_by(|a, b| compare_fields(fields, *a, *b)),
        }
    }
}

fn parse_pattern(pattern: DocumentRef<'_>) -> Result<Vec<(String, Direction)>> {
    if pattern.is_empty() {
        return Err(Failure::bad_value("The $sort pattern is empty when it should be a set of fields."));
    }
    pattern
        .iter()
        .map(|field| {
            let direction = Direction::parse(field.value)
                .ok_or_else(|| Failure::bad_value("The $sort element value must be either 1 or -1"))?;
            if field.name.is_empty() {
                return Err(Failure::bad_value("The $sort field cannot be empty"));
            }
            if field.name.split('.').any(str::is_empty) {
                return Err(Failure::bad_value(format!(
                    "The $sort field is a dotted field but has an empty part: {}",
                    field.name
                )));
            }
            Ok((field.name.to_owned(), direction))
        })
        .collect()
}

fn compare_fields(fields: &[(String, Direction)], a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    fields
        .iter()
        .map(|(path, direction)| direction.apply(order::compare(key(a, path), key(b, path))))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// The value that an element sorts by; null where there is none.
fn key<'a>(element: ValueRef<'a>, path: &str) -> ValueRef<'a> {
    if element.as_document().is_none() {
        return ValueRef::Null;
    }
    path.split('.').try_fold(element, step).unwrap_or(ValueRef::Null)
}

fn step<'a>(value: ValueRef<'a>, name: &str) -> Option<ValueRef<'a>> {
    match value {
        ValueRef::Document(document) => document.get(name),
        ValueRef::Array(array) => array.get(as_index(name)?),
        _ => None,
    }
}
