//! The ratio of two systems' figures.

use crate::centre::Centre;
use crate::estimate::{SAMPLES_MIN, interval, positive_exp};
use crate::student;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How much higher or lower B is than A. Displayed as `1.23 ± 0.05x`, or with a wide interval as `1.23x (0.60..2.52)`.
///
/// All calculations use logarithms, see [`crate::Estimate::of`]. So the ratio is one of geometric means, and B over A
/// is exactly the inverse of A over B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// B divided by A.
    pub ratio: f64,
    /// Lower end of the 95 % confidence interval; with too few samples, the lowest ratio of any two of them.
    pub low: f64,
    /// Upper end; with too few samples, the highest ratio of any two of them.
    pub high: f64,
    /// Numbers of repetitions of A and of B.
    pub samples: (usize, usize),
    /// The conclusion from these samples alone.
    pub significance: Significance,
    /// The probability that chance makes a difference at least this large; `None` with too few samples. It serves to
    /// judge many ratios together.
    pub p_value: Option<f64>,
}

/// The conclusion about B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Significance {
    /// B is higher.
    Higher,
    /// B is lower.
    Lower,
    /// The interval includes 1, or the difference is below 2 %, which the layout of the code alone can cause.
    NoDifference,
    /// A or B has fewer than three repetitions.
    TooFewSamples,
}

/// Smaller differences are of no practical relevance, however significant.
pub const RELEVANT_DIFFERENCE: f64 = 0.02;

/// Largest half width of an interval, as a fraction of the ratio, that `±` can show: the two halves differ by less than
/// a tenth.
pub const SYMMETRIC_MAX: f64 = 0.1;

impl Ratio {
    /// The ratio of independent samples. `None` if there are none of A or B, or if one is not positive and finite.
    ///
    /// Source: B. Welch, "The generalization of Student's problem when several different population variances are
    /// involved", Biometrika 34 (1947); with trimming that of Yuen, see `Centre::of`. The rank test of Mann and Whitney
    /// finds almost as much, but nothing at all with three samples each.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        let (a, b) = (logarithms(a)?, logarithms(b)?);
        if a.len().min(b.len()) < SAMPLES_MIN {
            return Some(Self::of_too_few(&a, &b));
        }
        let (centre_a, centre_b) = (Centre::of(&a), Centre::of(&b));
        let difference = Centre {
            mean: centre_b.mean - centre_a.mean,
            variance: centre_a.variance + centre_b.variance,
            degrees_of_freedom: welch_degrees_of_freedom(centre_a, centre_b),
        };
        Some(Self::around(difference, (a.len(), b.len())))
    }

    /// The ratio of paired samples: `a[i]` and `b[i]` were taken right after each other. A disturbance of both, such as
    /// a machine that slows down over hours, then has no effect. `None` if the numbers of samples differ or are 0, or
    /// if one is not positive and finite.
    pub fn paired(a: &[f64], b: &[f64]) -> Option<Self> {
        let (a, b) = (logarithms(a)?, logarithms(b)?);
        if a.len() != b.len() {
            return None;
        }
        if a.len() < SAMPLES_MIN {
            return Some(Self::of_too_few(&a, &b));
        }
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        Some(Self::around(Centre::of(&differences), (a.len(), b.len())))
    }

    fn around(difference: Centre, samples: (usize, usize)) -> Self {
        let (low, high) = interval(difference);
        let ratio = positive_exp(difference.mean);
        // On logarithms, so that B over A and A over B agree on relevance.
        let relevant = difference.mean.abs() >= RELEVANT_DIFFERENCE.ln_1p();
        let significance = match (relevant, low > 0.0, high < 0.0) {
            (true, true, _) => Significance::Higher,
            (true, _, true) => Significance::Lower,
            _ => Significance::NoDifference,
        };
        let p_value = Some(chance_of(difference));
        Self { ratio, low: positive_exp(low), high: positive_exp(high), samples, significance, p_value }
    }

    fn of_too_few(a: &[f64], b: &[f64]) -> Self {
        let lowest = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = |samples: &[f64]| samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self {
            ratio: positive_exp(crate::centre::mean(b) - crate::centre::mean(a)),
            low: positive_exp(lowest(b) - highest(a)),
            high: positive_exp(highest(b) - lowest(a)),
            samples: (a.len(), b.len()),
            significance: Significance::TooFewSamples,
            p_value: None,
        }
    }
}

/// The probability of a difference at least as far from 0 if there is none in truth.
fn chance_of(difference: Centre) -> f64 {
    if difference.mean == 0.0 {
        return 1.0;
    }
    student::two_sided_probability(difference.mean.abs() / difference.variance.sqrt(), difference.degrees_of_freedom)
}

fn logarithms(samples: &[f64]) -> Option<Vec<f64>> {
    let usable = |sample: &f64| *sample > 0.0 && sample.is_finite();
    (!samples.is_empty() && samples.iter().all(usable)).then(|| samples.iter().map(|sample| sample.ln()).collect())
}

fn welch_degrees_of_freedom(a: Centre, b: Centre) -> f64 {
    let denominator = a.variance.powi(2) / a.degrees_of_freedom + b.variance.powi(2) / b.degrees_of_freedom;
    if denominator > 0.0 {
        (a.variance + b.variance).powi(2) / denominator
    } else {
        // Samples without any variance, such as file sizes: the interval has no width anyway.
        a.degrees_of_freedom + b.degrees_of_freedom
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.significance == Significance::TooFewSamples {
            return write!(f, "{:.2}x", self.ratio);
        }
        let half_width = (self.high - self.low) / 2.0;
        // A wide interval extends far above the ratio, and `±` would make it extend below 0.
        if half_width <= self.ratio * SYMMETRIC_MAX {
            write!(f, "{:.2} ± {half_width:.2}x", self.ratio)
        } else {
            write!(f, "{:.2}x ({:.2}..{:.2})", self.ratio, self.low, self.high)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_is_students() {
        // Equal variances of 1e-4 / 2 for the means, 4 degrees of freedom: 5 % are beyond t = 2.776.
        let around = |centre: f64| [-0.01, 0.0, 0.01].map(|deviation: f64| (centre + deviation).exp());
        let p_value = |distance: f64| Ratio::of(&around(0.0), &around(distance)).unwrap().p_value.unwrap();
        assert!((p_value(2.776_45 * (2e-4_f64 / 3.0).sqrt()) - 0.05).abs() < 1e-5);
        assert!(p_value(0.1) < 0.001 && p_value(0.0) > 0.999_999);
        assert_eq!(Ratio::of(&[1.0; 3], &[1.0; 3]).unwrap().p_value, Some(1.0));
        assert_eq!(Ratio::of(&[1.0; 3], &[2.0; 3]).unwrap().p_value, Some(0.0));
        assert_eq!(Ratio::of(&[1.0; 2], &[2.0; 3]).unwrap().p_value, None);
    }

    #[test]
    fn pairs_take_out_disturbances_of_both() {
        let a = [100.0, 90.0, 80.0, 70.0, 60.0];
        let b = [91.0, 80.5, 72.0, 62.5, 54.5];
        assert_eq!(Ratio::of(&a, &b).unwrap().significance, Significance::NoDifference);
        let paired = Ratio::paired(&a, &b).unwrap();
        assert_eq!(paired.significance, Significance::Lower);
        assert!((paired.ratio - 0.9).abs() < 0.005 && paired.high < 0.92, "{paired:?}");
        assert_eq!(paired.to_string(), "0.90 ± 0.01x");
    }

    #[test]
    fn swapping_both_inverts_the_ratio() {
        let (a, b) = ([100.0, 103.0, 98.0, 101.0], [120.0, 118.0, 125.0, 119.0]);
        for of in [Ratio::of, Ratio::paired] {
            let (up, down) = (of(&a, &b).unwrap(), of(&b, &a).unwrap());
            assert_eq!((up.significance, down.significance), (Significance::Higher, Significance::Lower));
            assert!((up.ratio * down.ratio - 1.0).abs() < 1e-12 && (up.low * down.high - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_significant_trifle_is_no_difference() {
        let ratio = Ratio::of(&[1_000_000.0; 5], &[1_010_000.0; 5]).unwrap();
        assert!(ratio.low > 1.0, "{ratio:?}");
        assert_eq!(ratio.significance, Significance::NoDifference);
        let ratio = Ratio::of(&[1_000_000.0; 5], &[1_030_000.0; 5]).unwrap();
        assert_eq!((ratio.significance, ratio.to_string().as_str()), (Significance::Higher, "1.03 ± 0.00x"));
    }

    #[test]
    fn too_few_samples_give_the_range_that_was_seen() {
        let ratio = Ratio::of(&[10.0, 20.0], &[20.0, 20.0, 40.0]).unwrap();
        assert_eq!((ratio.samples, ratio.significance), ((2, 3), Significance::TooFewSamples));
        assert!((ratio.low - 1.0).abs() < 1e-12 && (ratio.high - 4.0).abs() < 1e-12, "{ratio:?}");
        assert_eq!(Ratio::of(&[10.0], &[15.0]).unwrap().to_string(), "1.50x");
    }

    #[test]
    fn a_wide_interval_is_shown_by_its_ends() {
        let ratio = Ratio::of(&[100.0, 200.0, 400.0], &[100.0, 50.0, 25.0]).unwrap();
        let (low, high) = (ratio.low, ratio.high);
        assert!(low > 0.0 && (high - low) / 2.0 > ratio.ratio, "{ratio:?}");
        assert_eq!(ratio.to_string(), format!("0.25x ({low:.2}..{high:.2})"));
    }

    #[test]
    fn figures_without_a_ratio_have_none() {
        assert_eq!(Ratio::of(&[], &[1.0]), None);
        assert_eq!(Ratio::of(&[1.0, 0.0, 1.0], &[1.0; 3]), None);
        assert_eq!(Ratio::of(&[1.0; 3], &[1.0, f64::INFINITY, 1.0]), None);
        assert_eq!(Ratio::paired(&[1.0; 3], &[1.0; 4]), None);
    }

    #[test]
    fn samples_far_apart_stay_within_what_json_carries() {
        let ratio = Ratio::of(&[1e-300, 1.0, 1e300], &[1e300, 1.0, 1e-300]).unwrap();
        assert!(ratio.low > 0.0 && ratio.high.is_finite(), "{ratio:?}");
        let json = serde_json::to_string(&ratio).unwrap();
        assert!(json.ends_with(r#""samples":[3,3],"significance":"no-difference","p_value":1.0}"#), "{json}");
        let read: Ratio = serde_json::from_str(&json).unwrap();
        assert!(read.low > 0.0 && read.high.is_finite(), "{json}");
    }
}
