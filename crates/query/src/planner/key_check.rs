//! Checks of keys against bounds that the key ranges do not express, and the way past keys that fail them.
//!
//! A range on one field and a value of the next, as in `{a: {$gt: 5}, b: 3}` with an index on both, is a range of keys that
//! holds other values of `b` too. The scan reads a few of them, then seeks the next key that may pass. It does not seek at
//! once, since a seek costs as much as several keys.

use super::index_bounds::IndexBounds;
use super::intervals::Intervals;
use super::key_ranges::{KeyRanges, between, past};
use bunko_bson::key_string::{self, decode, leading_bytes};
use bunko_catalog::{Index, is_shortened};
use bunko_errors::Result;
use bunko_matcher::Expression;
use bunko_matcher::planted::{Fault, active};
use bunko_operation::OperationContext;
use bunko_store::Direction;
use std::sync::Arc;

/// Number of keys in a row that a scan rejects before it seeks.
pub(crate) const KEYS_BEFORE_SEEK: usize = 8;

/// Checks keys against bounds that the ranges do not express.
pub(crate) struct KeyCheck {
    index: Arc<Index>,
    directions: Vec<key_string::Direction>,
    fields: Vec<(usize, Intervals)>,
    conditions: Vec<(usize, Expression)>,
    /// Whether keys are in the order of their values. Shortened keys are not.
    are_ordered: bool,
}

/// The first check that a key fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    /// The value of the field at this position is outside its bounds.
    Field(usize),
    /// A condition on the value of some field does not hold.
    Condition,
}

impl KeyCheck {
    pub fn new(bounds: &IndexBounds, ranges: &KeyRanges) -> Self {
        let (checked, conditions) = (&ranges.checked, bounds.on_keys.clone());
        let last =
            checked.iter().chain(conditions.iter().map(|(position, _)| position)).max().map_or(0, |last| last + 1);
        Self {
            index: Arc::clone(&bounds.index),
            directions: bounds.pattern[..last].iter().map(|field| field.direction).collect(),
            fields: checked.iter().map(|&position| (position, bounds.fields[position].clone())).collect(),
            conditions,
            are_ordered: !bounds.has_long_keys(),
        }
    }

    /// Whether there is nothing to check: the ranges hold exactly the keys that are within the bounds.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.conditions.is_empty()
    }

    /// The position of the first field whose bounds are checked, if a scan seeks past its other values.
    pub fn first_field(&self) -> Option<usize> {
        self.fields.first().map(|(position, _)| *position).filter(|_| self.are_ordered)
    }

    /// The first check that a key of the ranges fails; `None` if it is within the bounds.
    /// # Errors
    /// Errors of the operation.
    pub fn first_failing(&self, key: &[u8], operation: &OperationContext) -> Result<Option<Failing>> {
        // A key that cannot be decoded passes; the filter decides.
        if self.is_empty() || is_shortened(&self.index, key) {
            return Ok(None);
        }
        let Some(values) = decode(key, &self.directions) else { return Ok(None) };
        let is_outside = |(position, intervals): &&(usize, Intervals)| !intervals.contains(&values[*position]);
        if let Some((position, _)) = self.fields.iter().find(is_outside) {
            return Ok(Some(Failing::Field(*position)));
        }
        for (position, condition) in &self.conditions {
            if !condition.holds_for(values[*position].as_ref(), operation)? {
                return Ok(Some(Failing::Condition));
            }
        }
        Ok(None)
    }

    /// The place from which a scan finds the next key that may pass, after a key whose field is outside its bounds:
    /// forward it is the first key to read, backward the end of the keys to read. `leading` is the part of the key before
    /// the field.
    fn next_place(&self, key: &[u8], field: usize, leading: &[u8], scan: Direction) -> Option<Vec<u8>> {
        let (_, intervals) = self.fields.iter().find(|(position, _)| *position == field)?;
        let direction = self.directions[field];
        let value = decode(&key[leading.len()..], &[direction])?.pop()?;
        let ascends = (scan == Direction::Forward) == (direction == key_string::Direction::Ascending);
        let next = if ascends { intervals.above(&value) } else { intervals.below(&value) };
        let next = next.filter(|_| !active(Fault::SkipsAllOfPrefix)).map(|next| between(leading, next, direction));
        Some(match (scan, next) {
            (Direction::Forward, Some((start, _))) => start,
            (Direction::Forward, None) => past(leading.to_vec()),
            (Direction::Backward, Some((_, end))) => end,
            (Direction::Backward, None) => leading.to_vec(),
        })
    }
}

/// The keys in a row that failed in one field and have the same values before it.
#[derive(Default)]
pub(crate) struct Outside {
    leading: Vec<u8>,
    field: usize,
    keys: usize,
}

impl Outside {
    /// Adds a key that failed. If it is time to seek, returns the place to go on from.
    pub fn add(&mut self, key: &[u8], failing: Failing, check: &KeyCheck, scan: Direction) -> Option<Vec<u8>> {
        let Failing::Field(field) = failing else { return None };
        if self.keys == 0 || self.field != field || !key.starts_with(&self.leading) {
            let leading = leading_bytes(key, &check.directions[..field])?;
            self.leading.clear();
            self.leading.extend_from_slice(&key[..leading]);
            (self.field, self.keys) = (field, 0);
        }
        self.keys += 1;
        if self.keys < KEYS_BEFORE_SEEK || !check.are_ordered {
            return None;
        }
        self.keys = 0;
        check.next_place(key, field, &self.leading, scan)
    }
}
