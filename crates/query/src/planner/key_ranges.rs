//! The key ranges of an index that contain its bounds.
//!
//! A list may have a million values, each with its own range, so their keys are stored as bytes, one after the other.

use super::index_bounds::IndexBounds;
use super::intervals::{Edge, IntervalRef, Intervals};
use bunko_bson::Value;
use bunko_bson::key_string::{self, Direction, MAX_BYTE};
use bunko_catalog::{KEY_PREFIX_BYTES, shorten_key};
use bunko_matcher::planted::{Fault, active};
use std::borrow::Cow;

/// Maximum number of ranges that the points of several fields may multiply to; later fields are then checked per key.
pub(super) const RANGES_MAX: usize = 10_000;
/// Maximum size in bytes of such ranges' keys: a hundred long strings in each of two fields make ten thousand keys of
/// twice the length.
const RANGES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The keys to read, and the fields to check on each key.
#[derive(Clone, Debug)]
pub(crate) struct KeyRanges {
    ranges: Ranges,
    /// Positions of fields that the ranges alone do not narrow.
    pub checked: Vec<usize>,
}

/// Ranges of keys, in key order.
#[derive(Clone, Debug)]
enum Ranges {
    /// Single keys of a unique index.
    Keys(Packed),
    /// All keys with these prefixes.
    Beginnings(Packed),
    /// From one key up to, but not including, another.
    Between(Vec<(Vec<u8>, Vec<u8>)>),
}

/// A borrowed range.
pub(crate) enum RangeRef<'r> {
    /// A single key of a unique index.
    Key(&'r [u8]),
    /// From `start` up to, but not including, `end`.
    Between { start: &'r [u8], end: Cow<'r, [u8]> },
}

/// Byte strings, stored one after the other.
#[derive(Clone, Debug, Default)]
struct Packed {
    bytes: Vec<u8>,
    /// The end of each string.
    ends: Vec<u32>,
}

impl Packed {
    fn one(string: &[u8]) -> Self {
        let mut packed = Self::default();
        packed.push(|bytes| bytes.extend_from_slice(string));
        packed
    }

    /// Adds a string; `append` writes it.
    fn push(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    fn get(&self, position: usize) -> &[u8] {
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[position] as usize]
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|position| self.get(position))
    }

    /// Each string combined with each point appended, in key order.
    fn with_points(&self, points: &Intervals, direction: Direction) -> Self {
        let count = self.ends.len() * points.len();
        let mut made = Self { bytes: Vec::new(), ends: Vec::with_capacity(count) };
        for prefix in self.iter() {
            each(points, direction, &mut |point| {
                made.push(|bytes| {
                    bytes.extend_from_slice(prefix);
                    key_string::append(bytes, point.start.as_ref(), direction);
                });
            });
        }
        made
    }

    /// Maximum total size of the strings that [`Self::with_points`] makes, by the size of the values.
    fn product_bytes(&self, points: &Intervals) -> usize {
        let values: usize = points.iter().map(|point| 16 + point.start.as_ref().content_bytes()).sum();
        self.bytes.len().saturating_mul(points.len()).saturating_add(values.saturating_mul(self.ends.len()))
    }
}

impl KeyRanges {
    /// The ranges that contain the bounds.
    pub fn of(bounds: &IndexBounds) -> Self {
        if let Some(window) = &bounds.window {
            return Self { ranges: Ranges::Between(vec![window.range()]), checked: Vec::new() };
        }
        let keys = Self::of_whole_keys(bounds);
        if bounds.has_long_keys() && !active(Fault::LongKeysInRanges) {
            Self { ranges: keys.ranges.loosened(), ..keys }
        } else {
            keys
        }
    }

    /// The ranges if the index has no shortened keys.
    fn of_whole_keys(bounds: &IndexBounds) -> Self {
        let mut prefixes = Packed::one(&[]);
        for (position, intervals) in bounds.fields.iter().enumerate() {
            let direction = bounds.pattern[position].direction;
            let is_too_much = || {
                prefixes.ends.len() * intervals.len() > RANGES_MAX
                    || prefixes.product_bytes(intervals) > RANGES_BYTES_MAX
            };
            if position > 0 && is_too_much() {
                return Self { ranges: Ranges::Beginnings(prefixes), checked: checked_from(bounds, position) };
            }
            if !intervals.is_points() {
                let mut ranges = Vec::with_capacity(prefixes.ends.len() * intervals.len());
                for prefix in prefixes.iter() {
                    each(intervals, direction, &mut |interval| ranges.push(between(prefix, interval, direction)));
                }
                return Self { ranges: Ranges::Between(ranges), checked: checked_from(bounds, position + 1) };
            }
            prefixes = prefixes.with_points(intervals, direction);
        }
        let ranges =
            if bounds.index.ends_with_record() { Ranges::Beginnings(prefixes) } else { Ranges::Keys(prefixes) };
        Self { ranges, checked: Vec::new() }
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        match &self.ranges {
            Ranges::Keys(packed) | Ranges::Beginnings(packed) => packed.ends.len(),
            Ranges::Between(ranges) => ranges.len(),
        }
    }

    /// The range at a position.
    pub fn get(&self, position: usize) -> RangeRef<'_> {
        match &self.ranges {
            Ranges::Keys(keys) => RangeRef::Key(keys.get(position)),
            Ranges::Beginnings(prefixes) => {
                let start = prefixes.get(position);
                RangeRef::Between { start, end: past(start.to_vec()).into() }
            }
            Ranges::Between(ranges) => {
                let (start, end) = &ranges[position];
                RangeRef::Between { start, end: end.into() }
            }
        }
    }

    /// Whether every range is a single key.
    pub fn are_keys(&self) -> bool {
        matches!(self.ranges, Ranges::Keys(_)) || self.len() == 0
    }
}

impl Ranges {
    /// Wider ranges that also contain all shortened keys of these ranges, and perhaps others.
    fn loosened(self) -> Self {
        let ranges = match self {
            Self::Keys(keys) => {
                let mut shortened = Packed::default();
                for key in keys.iter() {
                    let mut key = key.to_vec();
                    shorten_key(&mut key);
                    shortened.push(|bytes| bytes.extend_from_slice(&key));
                }
                return Self::Keys(shortened);
            }
            Self::Beginnings(prefixes) if prefixes.iter().all(|prefix| prefix.len() < KEY_PREFIX_BYTES) => {
                return Self::Beginnings(prefixes);
            }
            Self::Beginnings(prefixes) => {
                prefixes.iter().map(|prefix| (prefix.to_vec(), past(prefix.to_vec()))).collect()
            }
            Self::Between(ranges) => ranges,
        };
        let mut loose: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(ranges.len());
        for (mut start, mut end) in ranges {
            start.truncate(KEY_PREFIX_BYTES);
            if end.len() > KEY_PREFIX_BYTES {
                end.truncate(KEY_PREFIX_BYTES);
                end = behind(end);
            }
            // Widened ranges may touch or overlap.
            match loose.last_mut() {
                Some((_, last)) if start <= *last => {
                    if *last < end {
                        *last = end;
                    }
                }
                _ => loose.push((start, end)),
            }
        }
        Self::Between(loose)
    }
}

fn checked_from(bounds: &IndexBounds, position: usize) -> Vec<usize> {
    if active(Fault::ChecksLeftOut) {
        return Vec::new();
    }
    (position..bounds.fields.len()).filter(|&position| !bounds.fields[position].is_full()).collect()
}

/// Visits intervals in key order.
fn each(intervals: &Intervals, direction: Direction, visit: &mut dyn FnMut(IntervalRef<'_>)) {
    match direction {
        _ if active(Fault::DescendingIgnored) => intervals.iter().for_each(visit),
        Direction::Ascending => intervals.iter().for_each(visit),
        Direction::Descending => intervals.iter().rev().for_each(visit),
    }
}

/// The first byte string after all that begin with `prefix`.
fn behind(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            return prefix;
        }
    }
    // There is no such string. No key begins with this byte, so it serves as the end.
    vec![MAX_BYTE]
}

fn extended(prefix: &[u8], value: &Value, direction: Direction) -> Vec<u8> {
    let mut key = prefix.to_vec();
    key_string::append(&mut key, value.as_ref(), direction);
    key
}

/// A bound after all keys that begin with `prefix`.
pub(super) fn past(mut prefix: Vec<u8>) -> Vec<u8> {
    prefix.push(MAX_BYTE);
    prefix
}

/// The range of the keys that continue `prefix` with a value of the interval.
pub(super) fn between(prefix: &[u8], interval: IntervalRef<'_>, direction: Direction) -> (Vec<u8>, Vec<u8>) {
    let IntervalRef { start: first, start_edge: first_edge, end: last, end_edge: last_edge } = match direction {
        Direction::Ascending => interval,
        Direction::Descending => interval.reversed(),
    };
    let (first, last) = (extended(prefix, first, direction), extended(prefix, last, direction));
    let start = if first_edge == Edge::Inclusive { first } else { past(first) };
    (start, if last_edge == Edge::Inclusive { past(last) } else { last })
}
