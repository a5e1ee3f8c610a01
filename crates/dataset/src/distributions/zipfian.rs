//! Key `i` is drawn in proportion to 1 / (i + 1)^0.99, as in YCSB.
//!
//! Source: Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), section 3.2; exact for
//! the two hottest keys, an approximation for the others.
//!
//! YCSB sums the n terms of zeta, and adds new ones as keys are added. With 100 streams over 10^8 keys that would take
//! minutes before the first request, and the sum would depend on its history. The Euler-Maclaurin formula gives the
//! same number to 12 digits at the cost of one power.

use crate::random::Random;
use libm::pow;

/// The skew.
pub(super) const THETA: f64 = 0.99;
const ALPHA: f64 = 1.0 / (1.0 - THETA);
/// The second key's share of the first one's: 0.5^theta.
const SECOND: f64 = 0.503_477_775_028_359_4;
/// 2^(1 - theta).
const TWO_POWER: f64 = 1.006_955_550_056_718_8;
/// Riemann's zeta function at theta.
const ZETA_OF_THETA: f64 = -99.423_512_977_728_1;
/// Number of keys from which the Euler-Maclaurin formula is good to 12 digits.
const SUMMED_MAX: u64 = 32;

/// The generator, prepared for one number of keys.
#[derive(Clone, Debug)]
pub(super) struct Zipfian {
    keys: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// A generator for this number of keys, which must be at least 1.
    pub(super) fn over(keys: u64) -> Self {
        let power = pow(keys as f64, 1.0 - THETA);
        Self::with_zeta(keys, power, zeta(keys, power))
    }

    /// A generator whose zeta is known; `power` is `keys` to 1 - theta.
    pub(super) fn with_zeta(keys: u64, power: f64, zeta: f64) -> Self {
        let eta = (1.0 - TWO_POWER / power) / (1.0 - (1.0 + SECOND) / zeta);
        Self { keys, zeta, eta }
    }

    #[inline]
    pub(super) fn next(&mut self, random: &mut Random, keys: u64) -> u64 {
        if keys != self.keys {
            *self = Self::over(keys);
        }
        self.rank(random.fraction())
    }

    /// The key below which the fraction `u` of all draws falls.
    #[inline]
    fn rank(&self, u: f64) -> u64 {
        let point = u * self.zeta;
        let rank = if point < 1.0 {
            0
        } else if point < 1.0 + SECOND {
            1
        } else {
            (self.keys as f64 * pow(self.eta * u - self.eta + 1.0, ALPHA)) as u64
        };
        // Rounding may reach `keys`.
        rank.min(self.keys - 1)
    }
}

/// The sum of 1 / i^theta for i in 1..=n, where `power` is n^(1 - theta).
fn zeta(keys: u64, power: f64) -> f64 {
    if keys < SUMMED_MAX {
        return (1..=keys).map(|i| pow(i as f64, -THETA)).sum();
    }
    let n = keys as f64;
    let last_term = power / n;
    let corrections = [0.5, -THETA / (12.0 * n), THETA * (THETA + 1.0) * (THETA + 2.0) / (720.0 * n * n * n)];
    ZETA_OF_THETA + power * ALPHA + last_term * corrections.iter().sum::<f64>()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Distribution;
    use crate::distributions::tests::counts;

    /// The exact sum.
    pub(crate) fn summed(keys: u64) -> f64 {
        (1..=keys).map(|i| pow(i as f64, -THETA)).sum()
    }

    fn estimated(keys: u64) -> f64 {
        zeta(keys, pow(keys as f64, 1.0 - THETA))
    }

    #[test]
    fn zeta_is_the_sum_without_summing() {
        for keys in [1, 2, 31, 32, 33, 100, 1_000, 50_000] {
            let (sum, estimate) = (summed(keys), estimated(keys));
            assert!((estimate / sum - 1.0).abs() < 1e-12, "{keys}: {estimate}, not {sum}");
        }
        // YCSB's constant for 10^10 keys.
        assert!((estimated(10_000_000_000) / 26.469_028_201_783_02 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn constants_are_what_they_say() {
        assert!((pow(0.5, THETA) - SECOND).abs() < 1e-15);
        assert!((pow(2.0, 1.0 - THETA) - TWO_POWER).abs() < 1e-15);
    }

    #[test]
    fn shares_are_those_of_the_theory() {
        let (keys, draws) = (1_000, 2_000_000);
        let counts = counts(Distribution::Zipfian, keys, draws);
        let zeta = summed(keys);
        for (key, count) in counts.iter().enumerate().take(2) {
            let expected = draws as f64 * pow(key as f64 + 1.0, -THETA) / zeta;
            assert!((count - expected).abs() < 4.0 * expected.sqrt(), "key {key}: {count} of {expected}");
        }
        // The others are approximated; the next ones are drawn a little too often.
        for hottest in [10, 100, 500] {
            let share = counts[..hottest].iter().sum::<f64>() / draws as f64;
            let expected = summed(hottest as u64) / zeta;
            assert!((share / expected - 1.0).abs() < 0.05, "{hottest} keys: {share} of {expected}");
        }
        let tenths: Vec<f64> = counts.chunks(100).map(|tenth| tenth.iter().sum()).collect();
        assert!(tenths.is_sorted_by(|a, b| a > b), "{tenths:?}");
    }

    #[test]
    fn growing_one_by_one_gives_the_keys_of_the_final_number() {
        let mut grown = Zipfian::over(1);
        let mut random = Random::of_keys(1, 1);
        (1..=1_000).for_each(|keys| {
            grown.next(&mut random, keys);
        });
        let ready = Zipfian::over(1_000);
        assert!(
            (0..100).all(|percent| grown.rank(f64::from(percent) / 100.0) == ready.rank(f64::from(percent) / 100.0))
        );
    }
}
