//! The ranges of an index's keys that hold its bounds.
//!
//! A list may have a million values, each of which is a range of its own: these are kept as the bytes of their keys, one behind
//! the other.

use super::index_bounds::IndexBounds;
use super::intervals::{Edge, IntervalRef, Intervals};
use bunko_bson::Value;
use bunko_bson::key_string::{self, Direction, MAX_BYTE};
use bunko_catalog::{KEY_PREFIX_BYTES, shorten_key};
use std::borrow::Cow;

/// Most ranges that the points of several fields may multiply to; later fields are then checked key by key.
const RANGES_MAX: usize = 10_000;
/// Most bytes of the keys of such ranges: a hundred long strings at each of two fields make ten thousand of twice the length.
const RANGES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Keys to read, and what to check of each.
#[derive(Clone, Debug)]
pub(crate) struct KeyRanges {
    ranges: Ranges,
    /// Positions of fields whose values the ranges alone do not narrow down.
    pub checked: Vec<usize>,
}

/// Stretches of an index, in order of its keys.
#[derive(Clone, Debug)]
enum Ranges {
    /// Keys of a unique index.
    Keys(Packed),
    /// All keys that begin so.
    Beginnings(Packed),
    /// From a key up to but not including another one.
    Between(Vec<(Vec<u8>, Vec<u8>)>),
}

/// A stretch of an index, lent.
pub(crate) enum RangeRef<'r> {
    /// One key of a unique index.
    Key(&'r [u8]),
    /// From `start` up to but not including `end`.
    Between { start: &'r [u8], end: Cow<'r, [u8]> },
}

/// Byte strings, one behind the other.
#[derive(Clone, Debug, Default)]
struct Packed {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
}

impl Packed {
    fn one(string: &[u8]) -> Self {
        let mut packed = Self::default();
        packed.push(|bytes| bytes.extend_from_slice(string));
        packed
    }

    /// Adds a string, which `append` writes.
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

    /// Each of them with each interval's only value behind it, in the order of their keys.
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

    /// Most bytes of the strings that [`Self::with_points`] makes, by the content of the values.
    fn product_bytes(&self, points: &Intervals) -> usize {
        let values: usize = points.iter().map(|point| 16 + point.start.as_ref().content_bytes()).sum();
        self.bytes.len().saturating_mul(points.len()).saturating_add(values.saturating_mul(self.ends.len()))
    }
}

impl KeyRanges {
    /// The ranges that hold the bounds.
    pub fn of(bounds: &IndexBounds) -> Self {
        if let Some(window) = &bounds.window {
            return Self { ranges: Ranges::Between(vec![window.range()]), checked: Vec::new() };
        }
        let keys = Self::of_whole_keys(bounds);
        if bounds.has_long_keys() { Self { ranges: keys.ranges.loosened(), ..keys } } else { keys }
    }

    /// The ranges where no key of the index is shortened.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.ranges {
            Ranges::Keys(packed) | Ranges::Beginnings(packed) => packed.ends.len(),
            Ranges::Between(ranges) => ranges.len(),
        }
    }

    /// The one at a position.
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

    /// Whether each is one key.
    pub fn are_keys(&self) -> bool {
        matches!(self.ranges, Ranges::Keys(_)) || self.len() == 0
    }
}

impl Ranges {
    /// The ranges with all keys in them that were shortened, and perhaps others.
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
            // Two that have become wider may meet.
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
    (position..bounds.fields.len()).filter(|&position| !bounds.fields[position].is_full()).collect()
}

/// Visits intervals in the order of their keys.
fn each(intervals: &Intervals, direction: Direction, visit: &mut dyn FnMut(IntervalRef<'_>)) {
    match direction {
        Direction::Ascending => intervals.iter().for_each(visit),
        Direction::Descending => intervals.iter().rev().for_each(visit),
    }
}

/// The first of all byte strings behind those that begin with `prefix`.
fn behind(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            return prefix;
        }
    }
    // There is none. No key begins with this byte.
    vec![MAX_BYTE]
}

fn extended(prefix: &[u8], value: &Value, direction: Direction) -> Vec<u8> {
    let mut key = prefix.to_vec();
    key_string::append(&mut key, value.as_ref(), direction);
    key
}

/// Behind all keys that start with `prefix`.
fn past(mut prefix: Vec<u8>) -> Vec<u8> {
    prefix.push(MAX_BYTE);
    prefix
}

fn between(prefix: &[u8], interval: IntervalRef<'_>, direction: Direction) -> (Vec<u8>, Vec<u8>) {
    let IntervalRef { start: first, start_edge: first_edge, end: last, end_edge: last_edge } = match direction {
        Direction::Ascending => interval,
        Direction::Descending => interval.reversed(),
    };
    let (first, last) = (extended(prefix, first, direction), extended(prefix, last, direction));
    let start = if first_edge == Edge::Inclusive { first } else { past(first) };
    (start, if last_edge == Edge::Inclusive { past(last) } else { last })
}
