//! The order in which document numbers are inserted.

use crate::random::mix;
use crate::text_form::text_form;
use serde::{Deserialize, Serialize};

/// Whether keys are inserted in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum KeyOrder {
    /// As from a counter or a clock: every insert goes to an index's right edge.
    #[default]
    Ascending,
    /// A seeded permutation: inserts are spread over the whole index.
    Shuffled,
}

text_form!(KeyOrder, "key order", [Ascending => "ascending", Shuffled => "shuffled"]);

const ROUNDS: usize = 4;

/// A bijection of 0..`size` in constant memory: a Feistel network over the next power of two, repeated until the
/// number falls into the range again (cycle walking; fewer than two turns on average).
///
/// A shuffled table, the rejected design, takes 8 bytes a document in every generator.
/// Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains" (2002).
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    size: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    /// Keys of each round, for the high and the low half.
    keys: [[u64; 2]; ROUNDS],
}

impl Permutation {
    pub(crate) fn new(size: u64, seed: u64) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        let (high_bits, low_bits) = (bits / 2, bits.div_ceil(2));
        // The seed is mixed before it is counted up; otherwise the keys of near seeds would overlap.
        let seed = mix(seed);
        let key = |position: usize| mix(seed.wrapping_add(position as u64 + 1));
        let keys = std::array::from_fn(|round| [key(2 * round), key(2 * round + 1)]);
        Self { size, low_bits, low_mask: (1 << low_bits) - 1, high_mask: (1 << high_bits) - 1, keys }
    }

    /// The image of `index`; numbers beyond the permuted range map to themselves.
    #[inline]
    pub(crate) fn apply(&self, index: u64) -> u64 {
        if index >= self.size {
            return index;
        }
        let mut number = self.encrypt(index);
        while number >= self.size {
            number = self.encrypt(number);
        }
        number
    }

    #[inline]
    fn encrypt(&self, number: u64) -> u64 {
        let (mut high, mut low) = (number >> self.low_bits, number & self.low_mask);
        for [high_key, low_key] in self.keys {
            high ^= mix(low ^ high_key) & self.high_mask;
            low ^= mix(high ^ low_key) & self.low_mask;
        }
        high << self.low_bits | low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_is_met_once(size in 0..5_000_u64, seed: u64) {
            let permutation = Permutation::new(size, seed);
            let mut numbers: Vec<_> = (0..size).map(|index| permutation.apply(index)).collect();
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..size));
            // Additional inserts continue in ascending order.
            prop_assert!((size..size + 9).all(|index| permutation.apply(index) == index));
        }

        #[test]
        fn large_ranges_stay_in_range_and_apart(size in 1_u64.., seed: u64, index: u64) {
            let permutation = Permutation::new(size, seed);
            let (a, b) = (index % size, (index.wrapping_add(1)) % size);
            prop_assert!(permutation.apply(a) < size);
            prop_assert_eq!(permutation.apply(a) == permutation.apply(b), a == b);
        }
    }

    #[test]
    fn the_order_is_random() {
        let size = 100_000;
        let numbers: Vec<_> = (0..size).map(|index| Permutation::new(size, 1).apply(index)).collect();
        let of = |count: &dyn Fn(&[u64]) -> bool| numbers.windows(2).filter(|pair| count(pair)).count() as f64;
        // Half of all pairs ascend (standard deviation 91), and neighbours end up a third of the range apart.
        assert!((of(&|pair| pair[0] < pair[1]) / 50_000.0 - 1.0).abs() < 0.01);
        let apart = numbers.windows(2).map(|pair| pair[0].abs_diff(pair[1]) as f64).sum::<f64>() / size as f64;
        assert!((apart / (size as f64 / 3.0) - 1.0).abs() < 0.01, "{apart}");
        assert!(of(&|pair| pair[0].abs_diff(pair[1]) == 1) < 12.0);
        // About as many numbers as expected (one) map to themselves.
        assert!(numbers.iter().zip(0..).filter(|&(&number, index)| number == index).count() < 8);
    }
}
