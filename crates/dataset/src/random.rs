//! Random numbers that depend only on the seed and their purpose.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// The golden ratio's bits, whose consecutive multiples lie far apart.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every bit over all others; a bijection.
/// Source: SplitMix64 (Steele, Lea, Flood, 2014), its output function.
#[inline]
pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream for values that belong to the whole dataset.
    pub(crate) fn of_dataset(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The stream of one document's contents.
    #[inline]
    pub(crate) fn of_document(seed: u64, number: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed ^ number.wrapping_mul(STRIDE)))
    }

    /// An independent stream of keys.
    pub(crate) fn of_keys(seed: u64, stream: u64) -> Self {
        // Mixed twice, so that stream 1 of seed 0 is neither a document's stream nor stream 0 of a near seed.
        Self(Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed.wrapping_add(STRIDE)).wrapping_add(stream))))
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in 0..1, a multiple of 2^-53.
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number in 0..`end`. Compared with each other, the probabilities of two numbers differ by at most a share of
    /// `end` / 2^64.
    ///
    /// `rand`'s own ranges are exactly even, but their algorithm changed between versions, which would change every
    /// key.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}
