//! The `$sort` of `$push`: by whole elements, or by their fields.

use crate::dotted_path::as_index;
use bunko_bson::key_string::Direction;
use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_expression::{compare_elements, compare_fields, element_direction};
use bunko_operation::OperationContext;
use std::cmp::Ordering;

/// Elements sorted between two checks for interruption.
const RUN_COUNT: usize = 1024;

#[derive(Debug)]
pub(super) enum PushSort {
    WholeElements(Direction),
    /// By dotted paths; earlier paths take precedence.
    Fields(Vec<(String, Direction)>),
}

impl PushSort {
    /// # Errors
    /// `BadValue` for anything but 1, -1, or a document of those.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        if let ValueRef::Document(pattern) = value {
            return parse_pattern(pattern).map(Self::Fields);
        }
        element_direction(value).map(Self::WholeElements).ok_or_else(|| {
            Failure::bad_value(
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
            )
        })
    }

    /// The values in sorted order; the sort is stable.
    /// # Errors
    /// Errors of the operation.
    pub fn sorted<'v>(
        &self,
        values: &[ValueRef<'v>],
        strings: &StringOrder,
        operation: &OperationContext,
    ) -> Result<Vec<ValueRef<'v>>> {
        let order = match self {
            Self::WholeElements(direction) => sorted_positions(values.len(), operation, |a, b| {
                compare_elements(*direction, values[a], values[b], strings)
            }),
            Self::Fields(fields) => {
                // Looks up each element's fields once, and not per comparison.
                let mut keys = Vec::with_capacity(values.len() * fields.len());
                for value in values {
                    operation.work(fields.len())?;
                    keys.extend(fields.iter().map(|(path, _)| key(*value, path)));
                }
                let keys_of = |position: usize| &keys[position * fields.len()..(position + 1) * fields.len()];
                sorted_positions(values.len(), operation, |a, b| {
                    compare_fields(fields, keys_of(a), keys_of(b), strings)
                })
            }
        }?;
        Ok(order.into_iter().map(|position| values[position]).collect())
    }
}

/// Sorts the positions from 0 to below `count`: first in runs, so that interruptions are noticed, then by merging the
/// runs.
fn sorted_positions(
    count: usize,
    operation: &OperationContext,
    compare: impl Fn(usize, usize) -> Ordering,
) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..count).collect();
    for run in order.chunks_mut(RUN_COUNT) {
        operation.work(run.len())?;
        run.sort_by(|a, b| compare(*a, *b));
    }
    let mut run_count = RUN_COUNT;
    while run_count < count {
        let mut merged = Vec::with_capacity(count);
        for pair in order.chunks(2 * run_count) {
            let (mut first, mut second) = pair.split_at(run_count.min(pair.len()));
            while let (Some((a, first_rest)), Some((b, second_rest))) = (first.split_first(), second.split_first()) {
                operation.work(1)?;
                if compare(*a, *b).is_le() {
                    merged.push(*a);
                    first = first_rest;
                } else {
                    merged.push(*b);
                    second = second_rest;
                }
            }
            merged.extend_from_slice(first);
            merged.extend_from_slice(second);
        }
        order = merged;
        run_count *= 2;
    }
    Ok(order)
}

fn parse_pattern(pattern: DocumentRef<'_>) -> Result<Vec<(String, Direction)>> {
    if pattern.is_empty() {
        return Err(Failure::bad_value("The $sort pattern is empty when it should be a set of fields."));
    }
    pattern
        .iter()
        .map(|field| {
            let direction = element_direction(field.value)
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

/// The sort value of an element; null if missing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged_in_order_and_equal_values_keep_theirs() {
        let count = 3 * RUN_COUNT + 7;
        let value = |position: usize| position.wrapping_mul(2_654_435_761) % 97;
        let mut expected: Vec<usize> = (0..count).collect();
        expected.sort_by_key(|position| value(*position));
        let operation = OperationContext::unlimited();
        let sorted = sorted_positions(count, &operation, |a, b| value(a).cmp(&value(b))).expect("never stopped");
        assert_eq!(sorted, expected);
    }
}
