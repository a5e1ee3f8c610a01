//! A sample of an index's keys, from which the size of a key range is estimated.
//!
//! The sampled keys have all fields of the index and are in its order, so they are a histogram of as many buckets as
//! keys: by type, by value, under the index's collation, for each field of a compound index, and with several keys of a
//! document that has arrays. `key_sampling` makes samples.

use bunko_bson::key_string::{self, Direction};
use bunko_operation::Draw;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of keys of a sample.
pub(crate) const KEYS_MAX: usize = 1_000;
/// Minimum number of keys from which a part of an index is estimated.
const KEYS_MIN: usize = 32;
/// Number of bytes of a key that are kept, from its beginning. Two keys that differ only after them count as equal.
const KEY_BYTES_KEPT: usize = 64;
/// Maximum number of bytes of a sample.
pub(crate) const BYTES_MAX: u64 = (KEYS_MAX * (KEY_BYTES_KEPT + size_of::<u32>())) as u64;
/// Number of leading fields for which distinct values are counted.
const FIELDS_MAX: usize = 8;
/// A number drawn at random lies nearly always within this many standard deviations of the expected one.
const DEVIATIONS: f64 = 2.0;

/// An estimated number. The true one is hardly ever below `low` or above `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Estimate {
    pub low: f64,
    pub likely: f64,
    pub high: f64,
}

impl Estimate {
    /// Applies an ascending function to each number.
    #[must_use]
    pub fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self { low: function(self.low), likely: function(self.likely), high: function(self.high) }
    }

    /// Combines two estimates by a function that ascends in both.
    #[must_use]
    pub fn with(self, other: Self, function: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            low: function(self.low, other.low),
            likely: function(self.likely, other.likely),
            high: function(self.high, other.high),
        }
    }
}

/// Sampled keys within some ranges of an index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Number of sampled keys.
    pub keys: usize,
    /// Number of ranges.
    pub ranges: usize,
    /// Number of ranges without a sampled key.
    pub empty_ranges: usize,
    /// Number of leading fields that each range binds to one value.
    pub point_fields: usize,
}

/// How a sample was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Every n-th of all keys was kept; with n = 1 all of them.
    Walked,
    /// Keys of documents at random places.
    Drawn,
}

/// The state of a collection and its index when a sample was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MadeAt {
    /// Number of keys of the index.
    pub entries: u64,
    /// End of the log.
    pub log_bytes: u64,
    /// The id of the next record.
    pub record_ids: u64,
    /// Number of samples of the index that were made before this one.
    pub version: u64,
}

/// Some keys of an index, ascending.
#[derive(Debug)]
pub struct KeySample {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    method: Method,
    /// Estimated numbers of distinct values of the first field, of the first two fields, and so on.
    distinct: Vec<f64>,
    pub(crate) made_at: MadeAt,
    /// Bytes of the server's memory budget.
    _drawn: Option<Draw>,
}

/// An index's sample with the present size of the index.
#[derive(Clone, Debug)]
pub struct SampledIndex {
    /// The sample.
    pub sample: Arc<KeySample>,
    /// Number of keys at present.
    pub entries: u64,
    /// Number of keys at most that were added since the sample was made.
    pub added: u64,
}

/// Counts distinct values by the number of leading fields that neighbouring keys have in common.
pub(crate) struct Distinct {
    directions: Vec<Direction>,
    counts: Vec<u64>,
    compared: u64,
}

impl Distinct {
    pub fn new(directions: impl Iterator<Item = Direction>) -> Self {
        let directions: Vec<_> = directions.take(FIELDS_MAX).collect();
        Self { counts: vec![0; directions.len()], directions, compared: 0 }
    }

    /// Counts a key whose successor in the index is `next`. For each number of leading fields in which the two differ,
    /// it is the last key with its values, and so counts for one distinct value.
    pub fn count(&mut self, key: &[u8], next: Option<&[u8]>) {
        self.compared += 1;
        let alike = next.map_or(0, |next| self.fields_in_common(key, next));
        self.counts.iter_mut().skip(alike).for_each(|count| *count += 1);
    }

    fn fields_in_common(&self, one: &[u8], other: &[u8]) -> usize {
        let bytes = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        if bytes == one.len() && bytes == other.len() {
            return self.directions.len();
        }
        let ends_within = |fields: &usize| {
            key_string::leading_bytes(one, &self.directions[..*fields]).is_some_and(|end| end <= bytes)
        };
        (1..self.directions.len()).take_while(ends_within).count()
    }

    /// The numbers of distinct values among all `entries` keys, scaled up from the counted keys. They are at least the
    /// numbers among the keys `kept`.
    fn of_all(&self, entries: u64, kept: &[&[u8]]) -> Vec<f64> {
        let mut least = Self { directions: self.directions.clone(), counts: vec![0; self.counts.len()], compared: 0 };
        kept.iter().enumerate().for_each(|(at, key)| least.count(key, kept.get(at + 1).copied()));
        let scale = entries as f64 / self.compared.max(1) as f64;
        self.counts.iter().zip(least.counts).map(|(count, least)| (*count as f64 * scale).max(least as f64)).collect()
    }
}

impl KeySample {
    /// A sample of ascending `keys`, without the ids of their records.
    pub(crate) fn new<'k>(
        keys: impl Iterator<Item = &'k [u8]>,
        method: Method,
        distinct: &Distinct,
        made_at: MadeAt,
    ) -> Self {
        let keys: Vec<&[u8]> = keys.collect();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for key in &keys {
            bytes.extend_from_slice(&key[..key.len().min(KEY_BYTES_KEPT)]);
            ends.push(bytes.len() as u32);
        }
        bytes.shrink_to_fit();
        ends.shrink_to_fit();
        Self { bytes, ends, method, distinct: distinct.of_all(made_at.entries, &keys), made_at, _drawn: None }
    }

    /// Sets the draw that counts the sample's memory.
    pub(crate) fn counted_by(self, mut drawn: Draw) -> Self {
        drawn.set(self.held_bytes());
        Self { _drawn: Some(drawn), ..self }
    }

    /// Number of sampled keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the sample has no keys.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether the sample has enough keys for estimates, or comes from a walk over the whole index.
    pub fn is_useful(&self) -> bool {
        self.len() >= KEYS_MIN || self.method == Method::Walked
    }

    /// Bytes of memory that the sample takes.
    pub fn held_bytes(&self) -> u64 {
        (self.bytes.len() + size_of_val(self.ends.as_slice())) as u64
    }

    /// Number of keys of the index when the sample was made.
    pub fn entries(&self) -> u64 {
        self.made_at.entries
    }

    /// Number of samples that the index had before this one.
    pub fn version(&self) -> u64 {
        self.made_at.version
    }

    /// Estimated numbers of distinct values of the first field, of the first two fields, and so on.
    pub fn distinct(&self) -> &[f64] {
        &self.distinct
    }

    /// A sampled key, perhaps cut short.
    pub fn key(&self, position: usize) -> &[u8] {
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[position] as usize]
    }

    /// Positions of the sampled keys from `start` up to, not including, `end`.
    pub fn between(&self, start: &[u8], end: &[u8]) -> Range<usize> {
        let before = |bound: &[u8]| {
            let bound = &bound[..bound.len().min(KEY_BYTES_KEPT)];
            let (mut low, mut high) = (0, self.len());
            while low < high {
                let middle = low.midpoint(high);
                if self.key(middle) < bound { low = middle + 1 } else { high = middle }
            }
            low
        };
        let first = before(start);
        first..before(end).max(first)
    }
}

impl SampledIndex {
    /// Estimates how many keys the index has in ranges with these sampled keys.
    pub fn keys(&self, counted: &Counted) -> Estimate {
        let (entries, found) = (self.entries as f64, counted.keys as f64);
        let (per_key, per_key_then) = (self.per_sampled(entries), self.per_sampled(self.sample.entries() as f64));
        let ranges = counted.ranges as f64;
        // Keys between two kept ones are unknown, so each range of a walk may have more or fewer at both ends.
        let (below, above) = match self.sample.method {
            Method::Walked if self.sample.len() as u64 == self.sample.entries() => (0.0, 0.0),
            Method::Walked => (1.0 + ranges.sqrt(), 1.0 + ranges.sqrt()),
            Method::Drawn => (DEVIATIONS * found.sqrt(), DEVIATIONS * found.sqrt() + DEVIATIONS),
        };
        // Values too rare for the sample: each is taken to have as many keys as a value of the field has on average.
        let unseen = if above > 0.0 {
            counted.empty_ranges as f64 * self.per_rare_value(counted.point_fields, per_key)
        } else {
            0.0
        };
        let gone = ((self.sample.entries() + self.added) as f64 - entries).max(0.0);
        Estimate {
            low: ((found - below) * per_key_then - gone).clamp(0.0, entries),
            likely: (found * per_key + unseen).min(entries),
            high: ((found + above) * per_key_then + self.added as f64).min(entries),
        }
    }

    fn per_sampled(&self, entries: f64) -> f64 {
        entries / self.sample.len().max(1) as f64
    }

    /// Estimated number of keys with one value of the first `fields` fields, if no sampled key has that value.
    fn per_rare_value(&self, fields: usize, per_key: f64) -> f64 {
        let half = per_key / 2.0;
        let of_fields = fields.min(self.sample.distinct.len()).checked_sub(1);
        of_fields.map_or(half, |last| half.min(self.entries as f64 / self.sample.distinct[last].max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ValueRef;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn key(values: &[i32]) -> Vec<u8> {
        let mut key = Vec::new();
        for value in values {
            key_string::append(&mut key, ValueRef::Int32(*value), Direction::Ascending);
        }
        key
    }

    /// Number of keys of each value, by shapes of skew: even, one value with most keys, powers of two, all distinct.
    fn keys_of(shape: u8, count: i32) -> Vec<Vec<u8>> {
        let value = |number: i32| match shape {
            0 => number % 97,
            1 => {
                if number % 10 == 0 {
                    number
                } else {
                    7
                }
            }
            2 => number.leading_zeros() as i32,
            _ => number,
        };
        let mut keys: Vec<_> = (0..count).map(|number| key(&[value(number), number % 3])).collect();
        keys.sort();
        keys
    }

    fn sample(keys: &[Vec<u8>], method: Method, kept: &[usize]) -> SampledIndex {
        let mut distinct = Distinct::new([Direction::Ascending; 2].into_iter());
        let counted: Vec<usize> = if method == Method::Walked { (0..keys.len()).collect() } else { kept.to_vec() };
        for at in counted {
            distinct.count(&keys[at], keys.get(at + 1).map(Vec::as_slice));
        }
        let made_at = MadeAt { entries: keys.len() as u64, ..MadeAt::default() };
        let sample = KeySample::new(kept.iter().map(|&at| keys[at].as_slice()), method, &distinct, made_at);
        SampledIndex { sample: Arc::new(sample), entries: keys.len() as u64, added: 0 }
    }

    fn estimated(sampled: &SampledIndex, start: &[u8], end: &[u8], point_fields: usize) -> Estimate {
        let keys = sampled.sample.between(start, end).len();
        sampled.keys(&Counted { keys, ranges: 1, empty_ranges: usize::from(keys == 0), point_fields })
    }

    fn exact(keys: &[Vec<u8>], start: &[u8], end: &[u8]) -> f64 {
        keys.iter().filter(|key| start <= key.as_slice() && key.as_slice() < end).count() as f64
    }

    fn exactly_distinct(keys: &[Vec<u8>]) -> [f64; 2] {
        let first =
            |key: &Vec<u8>| key[..key_string::leading_bytes(key, &[Direction::Ascending]).expect("whole")].to_vec();
        [
            keys.iter().map(first).collect::<BTreeSet<_>>().len() as f64,
            keys.iter().collect::<BTreeSet<_>>().len() as f64,
        ]
    }

    proptest! {
        /// A walk knows each range up to the keys between two kept ones, and distinct values exactly.
        #[test]
        fn a_walk_bounds_every_range(shape in 0_u8..4, count in 1_i32..3_000, step in 1_usize..9, ends in (-5_i32..3_100, 0_i32..900)) {
            let keys = keys_of(shape, count);
            let kept: Vec<usize> = (step / 2..keys.len()).step_by(step).collect();
            let sampled = sample(&keys, Method::Walked, &kept);
            let (start, end) = (key(&[ends.0]), key(&[ends.0 + ends.1]));
            let (found, true_number) = (estimated(&sampled, &start, &end, 0), exact(&keys, &start, &end));
            prop_assert!(found.low <= true_number && true_number <= found.high, "{true_number} in {found:?}");
            prop_assert!(found.low <= found.likely && found.likely <= found.high, "{found:?}");
            if step == 1 {
                prop_assert_eq!(found.likely, true_number);
            }
            prop_assert_eq!(sampled.sample.distinct(), exactly_distinct(&keys));
        }
    }

    /// Keys at random places estimate ranges and points of skewed values within their bounds, up to the deviations that
    /// random numbers have.
    #[test]
    fn random_places_bound_most_ranges() {
        let mut random = 7_u64;
        let mut draw = |count: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % count
        };
        let (mut within, mut all) = (0, 0);
        for shape in 0..4 {
            let keys = keys_of(shape, 40_000);
            let mut kept: Vec<usize> = (0..KEYS_MAX).map(|_| draw(keys.len())).collect();
            kept.sort_unstable();
            let sampled = sample(&keys, Method::Drawn, &kept);
            for (found, exact) in sampled.sample.distinct().iter().zip(exactly_distinct(&keys)) {
                assert!(
                    (exact / 3.0..=exact * 3.0 + 100.0).contains(found),
                    "shape {shape}: {found} distinct of {exact}"
                );
            }
            for _ in 0..500 {
                let from = draw(40_000) as i32;
                let (width, point_fields) = if draw(2) == 0 { (1, 1) } else { (draw(10_000) as i32, 0) };
                let (start, end) = (key(&[from]), key(&[from + width]));
                let (found, exact) = (estimated(&sampled, &start, &end, point_fields), exact(&keys, &start, &end));
                all += 1;
                within += usize::from((found.low..=found.high).contains(&exact));
            }
        }
        assert!(within * 100 >= all * 93, "{within} of {all} within their bounds");
    }

    #[test]
    fn keys_added_since_widen_the_bounds() {
        let keys = keys_of(3, 500);
        let whole = sample(&keys, Method::Walked, &(0..500).collect::<Vec<_>>());
        let grown = SampledIndex { entries: 560, added: 80, ..whole };
        let found = estimated(&grown, &key(&[0]), &key(&[100]), 0);
        // 80 were added and 20 are gone: each of them may be in the range.
        assert!(found.low <= 100.0 - 20.0 && found.high >= 100.0 + 80.0, "{found:?}");
    }
}
