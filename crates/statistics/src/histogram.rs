//! Histograms of latencies.

mod curve;
mod encoding;

pub use curve::CurvePoint;
pub use encoding::HistogramError;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Latencies from 1 us to 1 h with three significant digits. The bounds never change, so histograms of many generators
/// merge exactly. Two are equal if all buckets are.
#[derive(Clone)]
pub struct LatencyHistogram(Histogram<u64>);

const LOWEST_NS: u64 = 1_000;
const HIGHEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// Minimum number of samples beyond a percentile; with fewer, it is noise.
const SAMPLES_BEYOND_MIN: f64 = 10.0;

/// Percentiles in microseconds; `None` if fewer than ten samples are beyond one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of requests measured.
    pub samples: u64,
    /// Arithmetic mean; `None` without samples.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: Option<f64>,
    /// 9 of 10 were faster.
    pub p90_us: Option<f64>,
    /// 99 of 100 were faster.
    pub p99_us: Option<f64>,
    /// 999 of 1,000 were faster.
    pub p999_us: Option<f64>,
    /// 9,999 of 10,000 were faster.
    pub p9999_us: Option<f64>,
    /// The slowest; `None` without samples.
    pub max_us: Option<f64>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS).expect("the bounds are constants"))
    }
}

impl LatencyHistogram {
    /// Counts one latency. A value outside the bounds counts as the nearest bound.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(HIGHEST_NS);
        self.0.saturating_record(nanoseconds.clamp(LOWEST_NS, HIGHEST_NS));
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("the bounds are the same constants");
    }

    /// Removes all samples, but keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latency, in microseconds, that this fraction of the samples did not exceed. `None` if fewer than ten samples
    /// are beyond it.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        self.supports(1.0 - quantile).then(|| microseconds(self.0.value_at_quantile(quantile)))
    }

    /// The percentiles.
    pub fn summary(&self) -> LatencySummary {
        let percentile = |quantile| self.quantile_us(quantile);
        let unless_empty = |us: f64| (!self.is_empty()).then_some(us);
        LatencySummary {
            samples: self.len(),
            mean_us: unless_empty(self.0.mean() / 1_000.0),
            p50_us: percentile(0.5),
            p90_us: percentile(0.9),
            p99_us: percentile(0.99),
            p999_us: percentile(0.999),
            p9999_us: percentile(0.9999),
            max_us: unless_empty(microseconds(self.max_ns())),
        }
    }

    /// The slowest latency, rounded up to the end of its bucket; 0 without samples.
    pub(crate) fn max_ns(&self) -> u64 {
        // The crate's own maximum is not 0 after a reset.
        if self.is_empty() { 0 } else { self.0.max() }
    }

    /// Whether enough samples are in the slowest part, given as a fraction.
    fn supports(&self, slowest_part: f64) -> bool {
        self.len() as f64 * slowest_part + 1e-6 >= SAMPLES_BEYOND_MIN
    }
}

// The crate's own comparison distinguishes a histogram that was reset from a new one.
impl PartialEq for LatencyHistogram {
    fn eq(&self, other: &Self) -> bool {
        let buckets = |histogram: &Self| {
            histogram
                .0
                .iter_recorded()
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect::<Vec<_>>()
        };
        self.len() == other.len() && buckets(self) == buckets(other)
    }
}

impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LatencyHistogram").field(&self.summary()).finish()
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1_000.0
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
        assert!(near(summary.mean_us, 5_000.5), "{summary:?}");
        assert!(near(summary.p90_us, 9_000.0), "{summary:?}");
        assert!(near(summary.p99_us, 9_900.0), "{summary:?}");
        assert!(near(summary.p999_us, 9_990.0), "{summary:?}");
        assert!(near(summary.max_us, 10_000.0), "{summary:?}");
        assert_eq!(summary.p9999_us, None, "one sample lies beyond it");
    }

    #[test]
    fn too_few_samples_give_no_percentile() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!((histogram.summary().max_us, histogram.summary().mean_us), (None, None));
        (0..999).for_each(|_| histogram.record(Duration::from_hours(2)));
        let summary = histogram.summary();
        assert!(summary.p50_us.is_some() && summary.p99_us.is_none(), "{summary:?}");
        assert!(summary.max_us.is_some_and(|max| max < 3_700e6), "{summary:?}");
    }

    #[test]
    fn a_cleared_histogram_equals_a_new_one() {
        let mut histogram = LatencyHistogram::default();
        for seconds in [0, 1, 3_600, 1_000_000] {
            histogram.record(Duration::from_secs(seconds));
        }
        assert_eq!(histogram.len(), 4);
        assert_ne!(histogram, LatencyHistogram::default());
        histogram.clear();
        assert!(histogram.is_empty());
        assert_eq!(histogram, LatencyHistogram::default());
        assert_eq!((histogram.summary().max_us, histogram.max_ns()), (None, 0));
        assert_eq!(LatencyHistogram::decode(&histogram.encode()), Ok(LatencyHistogram::default()));
    }
}
