//! Latencies.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// Latencies from 1 us to 1 h with three significant digits; never resized, so that histograms of many generators
/// merge exactly.
pub struct LatencyHistogram(Histogram<u64>);

const LOWEST_NS: u64 = 1_000;
const HIGHEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// Samples beyond a percentile without which it is noise.
const SAMPLES_BEYOND_MIN: f64 = 10.0;

/// Percentiles in microseconds; `None` where fewer than ten samples lie beyond one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Requests measured.
    pub samples: u64,
    /// Median.
    pub p50_us: Option<f64>,
    /// 99 of 100 were faster.
    pub p99_us: Option<f64>,
    /// 999 of 1,000 were faster.
    pub p999_us: Option<f64>,
    /// 9,999 of 10,000 were faster.
    pub p9999_us: Option<f64>,
    /// The slowest.
    pub max_us: Option<f64>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS).expect("the bounds are constants"))
    }
}

impl LatencyHistogram {
    /// Counts one latency; outside the bounds it counts as the nearest.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record((latency.as_nanos() as u64).max(LOWEST_NS));
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("the bounds are the same constants");
    }

    /// The percentiles.
    pub fn summary(&self) -> LatencySummary {
        let samples = self.0.len();
        let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1_000.0;
        let percentile = |quantile: f64| {
            let enough = samples as f64 * (1.0 - quantile) + 1e-6 >= SAMPLES_BEYOND_MIN;
            enough.then(|| microseconds(self.0.value_at_quantile(quantile)))
        };
        LatencySummary {
            samples,
            p50_us: percentile(0.5),
            p99_us: percentile(0.99),
            p999_us: percentile(0.999),
            p9999_us: percentile(0.9999),
            max_us: (samples > 0).then(|| microseconds(self.0.max())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_histograms_know_their_percentiles() {
        let (mut odd, mut even) = (LatencyHistogram::default(), LatencyHistogram::default());
        for microseconds in 1..=10_000 {
            let histogram = if microseconds % 2 == 0 { &mut even } else { &mut odd };
            histogram.record(Duration::from_micros(microseconds));
        }
        odd.merge(&even);
        let summary = odd.summary();
        assert_eq!(summary.samples, 10_000);
        let near =
            |value: Option<f64>, expected: f64| value.is_some_and(|value| (value / expected - 1.0).abs() < 0.002);
        assert!(near(summary.p50_us, 5_000.0), "{summary:?}");
        assert!(near(summary.p99_us, 9_900.0), "{summary:?}");
        assert!(near(summary.p999_us, 9_990.0), "{summary:?}");
        assert!(near(summary.max_us, 10_000.0), "{summary:?}");
        assert_eq!(summary.p9999_us, None, "one sample lies beyond it");
    }

    #[test]
    fn too_few_samples_give_no_percentile() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!(histogram.summary().max_us, None);
        (0..999).for_each(|_| histogram.record(Duration::from_hours(2)));
        let summary = histogram.summary();
        assert!(summary.p50_us.is_some() && summary.p99_us.is_none(), "{summary:?}");
        assert!(summary.max_us.is_some_and(|max| max < 3_700e6), "{summary:?}");
    }
}
