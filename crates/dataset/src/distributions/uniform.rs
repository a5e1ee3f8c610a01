//! All keys equally likely.

use crate::random::Random;

#[inline]
pub(super) fn next(random: &mut Random, keys: u64) -> u64 {
    random.below(keys)
}

#[cfg(test)]
mod tests {
    use crate::Distribution;
    use crate::distributions::tests::counts;

    #[test]
    fn keys_are_drawn_evenly() {
        for keys in [2, 3, 10, 1_000] {
            let expected = 1_000.0;
            let counts = counts(Distribution::Uniform, keys, (keys as f64 * expected) as usize);
            let chi_square: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
            // Chi-square's mean is its degrees of freedom, and its variance twice that; the limit is four deviations
            // and a little more.
            let freedom = keys as f64 - 1.0;
            assert!(chi_square < freedom + 4.0 * (2.0 * freedom).sqrt() + 4.0, "{chi_square} over {keys} keys");
            // A distribution that is too even would not be random either.
            assert!(chi_square > freedom - 4.0 * (2.0 * freedom).sqrt(), "{chi_square} over {keys} keys");
        }
    }
}
