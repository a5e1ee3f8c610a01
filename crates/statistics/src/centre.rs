//! The centre of samples, and how well it is known.

/// A mean with the figures that a t interval needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Centre {
    /// The mean. With [`TRIMMED_FROM`] samples or more, the lowest and the highest fifth are left out.
    pub mean: f64,
    /// Variance of that mean, not of the samples.
    pub variance: f64,
    /// Degrees of freedom of `variance`.
    pub degrees_of_freedom: f64,
}

/// Minimum number of samples for a trimmed mean. Trimming keeps a stalled repetition from hiding a difference, but with
/// fewer samples it costs too much. Simulated with 5 pairs and 3 % normal noise, the trimmed mean finds a slowdown of
/// 10 % in 75 of 100 cases, the plain mean in 98. With 7 pairs these are 99.5 and 100; if one run in ten stalls, 77 and
/// 55.
const TRIMMED_FROM: usize = 7;

impl Centre {
    /// The centre of at least two samples.
    ///
    /// Source: K. Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61 (1974). The trimmed
    /// mean's variance is the scaled variance of the winsorised samples; without trimming it is Student's.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let trimmed = if count < TRIMMED_FROM { 0 } else { count / 5 };
        let kept = &sorted[trimmed..count - trimmed];
        let (lowest, highest) = (kept[0], kept[kept.len() - 1]);
        let winsorised: Vec<f64> = sorted.iter().map(|sample| sample.clamp(lowest, highest)).collect();
        let degrees_of_freedom = kept.len() as f64 - 1.0;
        Self {
            mean: mean(kept),
            variance: squared_deviations(&winsorised) / (kept.len() as f64 * degrees_of_freedom),
            degrees_of_freedom,
        }
    }
}

/// Arithmetic mean of at least one sample.
pub fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Sum of the squared distances from the mean.
pub fn squared_deviations(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    samples.iter().map(|sample| (sample - mean).powi(2)).sum()
}

/// Median of at least one sample.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_give_the_plain_mean() {
        let centre = Centre::of(&[4.0, 2.0, 6.0]);
        assert_eq!(centre, Centre { mean: 4.0, variance: 4.0 / 3.0, degrees_of_freedom: 2.0 });
    }

    #[test]
    fn more_samples_are_trimmed() {
        // The middle six of 1..10 are kept. Winsorised they are 3 3 3 4 5 6 7 8 8 8, with a sum of squares of 42.5.
        let samples: Vec<f64> = (1..=10).map(f64::from).collect();
        let centre = Centre::of(&samples);
        assert_eq!((centre.mean, centre.degrees_of_freedom), (5.5, 5.0));
        assert!((centre.variance - 42.5 / 30.0).abs() < 1e-12, "{centre:?}");
        let mut stalled = samples;
        stalled[9] = 1e6;
        assert_eq!(Centre::of(&stalled), centre);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&[9.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
    }
}
