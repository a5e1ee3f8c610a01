//! Decides whether a series rises or falls.

use crate::centre::median;
use serde::{Deserialize, Serialize};

/// The straight line through a series of equal steps, and how well its slope is known.
///
/// The slope is Theil and Sen's, the median of the slopes between all pairs, with the interval from Kendall's
/// statistic. A single stall affects neither.
/// Sources: P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", JASA 63 (1968). For series
/// with similar neighbours, K. H. Hamed and A. R. Rao, "A modified Mann-Kendall trend test for autocorrelated data",
/// Journal of Hydrology 204 (1998).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// The line's value at the first step.
    pub from: f64,
    /// The line's value at the last step.
    pub to: f64,
    /// Lower end of the 99 % interval of `to - from`.
    pub change_low: f64,
    /// Upper end of the 99 % interval of `to - from`.
    pub change_high: f64,
}

/// Minimum number of values; from here on, Kendall's statistic is close to normal.
const STEPS_MIN: usize = 10;
/// Two-sided 1 % point of the normal distribution.
const NORMAL_99: f64 = 2.576;
/// Two-sided 5 % point of the normal distribution.
const NORMAL_95: f64 = 1.96;

impl Trend {
    /// The trend of at least ten values; `None` for fewer.
    pub fn of(series: &[f64]) -> Option<Self> {
        let count = series.len();
        if count < STEPS_MIN {
            return None;
        }
        let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
        for (first, &earlier) in series.iter().enumerate() {
            let later = series.iter().enumerate().skip(first + 1);
            slopes.extend(later.map(|(second, value)| (value - earlier) / (second - first) as f64));
        }
        slopes.sort_by(f64::total_cmp);
        let slope = median(&slopes);
        let levels: Vec<f64> = series.iter().enumerate().map(|(step, value)| value - slope * step as f64).collect();
        let from = median(&levels);
        let last = (count - 1) as f64;
        let half = NORMAL_99 * (kendall_variance(series) * dependence(&levels)).sqrt();
        let at = |rank: f64| slopes[(rank.round().max(0.0) as usize).min(slopes.len() - 1)];
        let middle = slopes.len() as f64 / 2.0;
        Some(Self {
            from,
            to: from + slope * last,
            change_low: at(middle - half / 2.0 - 1.0) * last,
            change_high: at(middle + half / 2.0) * last,
        })
    }

    /// The change relative to `from`: 0.1 is a rise by a tenth.
    pub fn change(&self) -> f64 {
        (self.to - self.from) / self.from
    }

    /// Whether the series rises by more than this fraction of `from`, and noise alone does not explain the rise.
    pub fn rises_by_more_than(&self, share: f64) -> bool {
        self.change_low > 0.0 && self.to - self.from > share * self.from
    }
}

/// Variance of Kendall's S for independent values, with its correction for ties.
fn kendall_variance(series: &[f64]) -> f64 {
    let term = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| term(tied.len() as f64)).sum();
    (term(series.len() as f64) - ties) / 18.0
}

/// The factor by which similar neighbours increase that variance; never below 1.
fn dependence(detrended: &[f64]) -> f64 {
    let count = detrended.len() as f64;
    let ranks = ranks(detrended);
    let mean = f64::midpoint(count, 1.0);
    let total: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if total == 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| {
        let pairs = ranks.iter().zip(&ranks[lag..]);
        pairs.map(|(one, other)| (one - mean) * (other - mean)).sum::<f64>() / total
    };
    let sum: f64 = (1..detrended.len())
        .map(|lag| (lag as f64, correlation(lag)))
        // A correlation that chance explains does not count.
        .filter(|(_, correlation)| correlation.abs() > NORMAL_95 / count.sqrt())
        .map(|(lag, correlation)| (count - lag) * (count - lag - 1.0) * (count - lag - 2.0) * correlation)
        .sum();
    (1.0 + 2.0 / (count * (count - 1.0) * (count - 2.0)) * sum).max(1.0)
}

/// Ranks from 1; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + f64::midpoint(equal, 1.0)
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_exactly_and_few_steps_are_none() {
        let line: Vec<f64> = (0..20).map(|step| 100.0 + 5.0 * f64::from(step)).collect();
        let trend = Trend::of(&line).expect("enough");
        assert_eq!((trend.from, trend.to), (100.0, 195.0));
        assert_eq!((trend.change_low, trend.change_high), (95.0, 95.0));
        assert!(trend.rises_by_more_than(0.9) && !trend.rises_by_more_than(0.96));
        assert_eq!(Trend::of(&line[..9]), None);
    }

    #[test]
    fn a_level_without_noise_does_not_move() {
        let trend = Trend::of(&[7.0; 30]).expect("enough");
        assert_eq!((trend.from, trend.to, trend.change_low, trend.change_high), (7.0, 7.0, 0.0, 0.0));
        assert!(!trend.rises_by_more_than(0.0));
    }

    #[test]
    fn stalls_at_the_end_are_no_trend() {
        let mut series: Vec<f64> = (0..60).map(|step| 100.0 + f64::from(step * 7 % 11)).collect();
        series[57] = 5_000.0;
        series[59] = 9_000.0;
        let trend = Trend::of(&series).expect("enough");
        assert!(!trend.rises_by_more_than(0.05), "{trend:?}");
    }

    #[test]
    fn ties_and_ranks_are_counted() {
        // Ten different values give 10 * 9 * 25 / 18 = 125; three equal ones subtract 3 * 2 * 11 / 18.
        let different: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(kendall_variance(&different), 125.0);
        let mut tied = different;
        (tied[1], tied[2]) = (0.0, 0.0);
        assert_eq!(kendall_variance(&tied), 125.0 - 66.0 / 18.0);
        assert_eq!(ranks(&[3.0, 1.0, 3.0]), [2.5, 1.0, 2.5]);
    }
}
