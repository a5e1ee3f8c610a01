//! Zipfian, with ranks counted backwards from the newest key.
//! Source: YCSB, `SkewedLatestGenerator`.

use super::zipfian::Zipfian;
use crate::random::Random;

#[derive(Clone, Debug)]
pub(super) struct Latest {
    age: Zipfian,
}

impl Default for Latest {
    fn default() -> Self {
        Self { age: Zipfian::over(1) }
    }
}

impl Latest {
    #[inline]
    pub(super) fn next(&mut self, random: &mut Random, keys: u64) -> u64 {
        keys - 1 - self.age.next(random, keys)
    }
}

#[cfg(test)]
mod tests {
    use super::super::zipfian::tests::summed;
    use super::*;

    #[test]
    fn the_newest_key_is_the_hottest_while_keys_are_added() {
        let mut latest = Latest::default();
        let mut random = Random::of_keys(3, 0);
        let draws = 100_000;
        let newest = (1..=draws).filter(|&keys| latest.next(&mut random, keys) == keys - 1).count() as f64;
        let expected: f64 = (1..=100).map(|part| 1.0 / summed(part * draws / 100)).sum::<f64>() / 100.0;
        assert!((newest / draws as f64 / expected - 1.0).abs() < 0.05, "{newest} of {expected}");
    }
}
