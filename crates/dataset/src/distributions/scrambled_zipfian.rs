//! Zipfian, with the hot keys scattered over all by a hash.
//!
//! As in YCSB, ranks are drawn from 10^10 for any number of keys, and their hash is taken modulo that number. So each
//! key has a part of the long tail, and a new key does not change the skew (but changes which keys are hot).
//! Source: YCSB, `ScrambledZipfianGenerator`.

use super::zipfian::{THETA, Zipfian};
use crate::fnv;
use crate::random::Random;

const RANKS: u64 = 10_000_000_000;
/// The zeta of [`RANKS`] ranks.
const ZETA: f64 = 26.469_028_201_783_02;

#[derive(Clone, Debug)]
pub(super) struct ScrambledZipfian {
    ranks: Zipfian,
}

impl Default for ScrambledZipfian {
    fn default() -> Self {
        Self { ranks: Zipfian::with_zeta(RANKS, libm::pow(RANKS as f64, 1.0 - THETA), ZETA) }
    }
}

impl ScrambledZipfian {
    #[inline]
    pub(super) fn next(&mut self, random: &mut Random, keys: u64) -> u64 {
        fnv::scatter(self.ranks.next(random, RANKS)) % keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Distribution;
    use crate::distributions::tests::counts;

    #[test]
    fn the_hottest_key_is_where_the_hash_puts_it_and_as_hot_as_the_theory_says() {
        let (keys, draws) = (1_000, 1_000_000);
        let counts = counts(Distribution::ScrambledZipfian, keys, draws);
        let hottest = (0..counts.len()).max_by(|&a, &b| counts[a].total_cmp(&counts[b])).expect("keys");
        assert_eq!(hottest as u64, fnv::scatter(0) % keys);
        // The key has its own share, and a thousandth of the shares of all other ranks.
        let share = counts[hottest] / draws as f64;
        let expected = 1.0 / ZETA + (1.0 - 1.0 / ZETA) / keys as f64;
        assert!((share / expected - 1.0).abs() < 0.03, "{share} of {expected}");
        // Hot keys are not neighbours: both halves of the keys get about half of all accesses.
        let lower = counts[..500].iter().sum::<f64>() / draws as f64;
        assert!((0.4..0.6).contains(&lower), "{lower}");
    }
}
