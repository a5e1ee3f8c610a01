//! One figure from several repetitions.

use crate::centre::{Centre, median};
use crate::student;
use serde::{Deserialize, Serialize};

/// The median of repetitions and its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median of the repetitions.
    pub median: f64,
    /// 95 % confidence interval of the true figure, lower end first. `None` with fewer than three repetitions, or if
    /// one is not above 0. It always includes the median, and its lower end is above 0.
    pub interval: Option<(f64, f64)>,
    /// The lowest and the highest repetition: the only spread known if there is no interval.
    pub range: (f64, f64),
    /// Number of repetitions.
    pub samples: usize,
}

/// With fewer samples, an interval would depend more on the formula than on the samples.
pub const SAMPLES_MIN: usize = 3;
/// Confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;

impl Estimate {
    /// The estimate from samples. `None` without samples, or if one is not finite.
    ///
    /// The interval is Student's, on the logarithms (with seven samples or more, around the trimmed mean). Disturbances
    /// multiply: a machine that is busy with something else lowers every rate by some percent, whatever its size. On
    /// logarithms, the lower end also never falls below 0. Samples that are not all positive have no logarithms, and
    /// Student's interval on the samples themselves could go below 0, where no rate, time or size can be; so they only
    /// get a range. An interval from order statistics, which needs no distribution, would need six samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || !samples.iter().all(|sample| sample.is_finite()) {
            return None;
        }
        let median = median(samples);
        let has_interval = samples.len() >= SAMPLES_MIN && samples.iter().all(|&sample| sample > 0.0);
        let interval = has_interval.then(|| {
            let logarithms: Vec<f64> = samples.iter().map(|sample| sample.ln()).collect();
            let (low, high) = interval(Centre::of(&logarithms));
            (positive_exp(low).min(median), positive_exp(high).max(median))
        });
        let lowest = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { median, interval, range: (lowest, highest), samples: samples.len() })
    }
}

/// Student's interval around a centre.
pub fn interval(centre: Centre) -> (f64, f64) {
    let half_width = student::critical_value(CONFIDENCE, centre.degrees_of_freedom) * centre.variance.sqrt();
    (centre.mean - half_width, centre.mean + half_width)
}

/// `exp`, limited to positive finite values, which JSON can represent.
pub fn positive_exp(logarithm: f64) -> f64 {
    logarithm.exp().clamp(f64::MIN_POSITIVE, f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let estimate = Estimate::of(&[90.0, 100.0, 110.0]).unwrap();
        assert_eq!((estimate.median, estimate.samples), (100.0, 3));
        // On logarithms: mean 4.60182, deviation 0.10038, so +- 4.30265 * 0.10038 / sqrt(3) = 0.24936.
        let (low, high) = estimate.interval.unwrap();
        assert!((low - 77.67).abs() < 0.01 && (high - 127.89).abs() < 0.01, "{low} {high}");
    }

    #[test]
    fn few_repetitions_have_no_interval() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN, 2.0]), None);
        assert_eq!(
            Estimate::of(&[3.0, 5.0]),
            Some(Estimate { median: 4.0, interval: None, range: (3.0, 5.0), samples: 2 })
        );
    }

    #[test]
    fn equal_repetitions_have_an_interval_of_no_width() {
        let (low, high) = Estimate::of(&[50.0; 4]).unwrap().interval.unwrap();
        assert!(low <= 50.0 && 50.0 <= high && high - low < 1e-9, "{low} {high}");
    }

    #[test]
    fn zeros_have_a_range_and_no_interval() {
        let estimate = Estimate::of(&[0.0, 0.0, 3.0, 1.0]).unwrap();
        assert_eq!((estimate.median, estimate.interval, estimate.range), (0.5, None, (0.0, 3.0)));
    }

    #[test]
    fn no_interval_reaches_below_zero() {
        let (low, high) = Estimate::of(&[0.01, 100.0, 1.0]).unwrap().interval.unwrap();
        assert!(low > 0.0 && high.is_finite(), "{low} {high}");
    }

    #[test]
    fn a_stall_among_many_repetitions_moves_little() {
        let mut samples: Vec<f64> = (0..20).map(|index| 100.0 + f64::from(index % 5)).collect();
        samples[3] = 1.0;
        let (low, high) = Estimate::of(&samples).unwrap().interval.unwrap();
        assert!(low > 100.5 && high < 103.5, "{low} {high}");
    }
}
