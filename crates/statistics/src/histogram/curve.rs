//! Points of a percentile chart.

use super::{LatencyHistogram, microseconds};
use serde::{Deserialize, Serialize};

/// A point of a percentile chart whose horizontal axis is `1 / (1 - quantile)` on a log scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// 0 is the fastest request, 1 the slowest. The slowest has no place on that axis: draw it at the samples'
    /// resolution, `1 - 1 / samples`.
    pub quantile: f64,
    /// The latency in microseconds.
    pub us: f64,
}

/// Points of one decade, as fractions of slower samples: 1 is the quantile 0, then 0.2 ... 0.5 ... 0.75 ... 0.85; the
/// next decade begins at 0.9.
const SLOWER_PARTS: [f64; 9] = [1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15];
/// Maximum number of decades. With nine points each and the maximum, a chart has fewer than a hundred points; a further
/// decade would need 10^11 requests.
const DECADES_MAX: i32 = 10;

impl LatencyHistogram {
    /// At most a hundred points in ascending order. They begin at 0 and approach 1 while ten samples are beyond; the
    /// last one is the maximum, at 1. Empty without samples.
    pub fn curve(&self) -> Vec<CurvePoint> {
        if self.is_empty() {
            return Vec::new();
        }
        let quantiles: Vec<f64> = (0..DECADES_MAX)
            .flat_map(|decade| SLOWER_PARTS.map(|part| part * 10_f64.powi(-decade)))
            .take_while(|&slower| slower == 1.0 || self.supports(slower))
            .map(|slower| 1.0 - slower)
            .chain([1.0])
            .collect();
        let latencies = self.0.value_at_quantiles(quantiles.iter().copied()).map(microseconds);
        quantiles.iter().zip(latencies).map(|(&quantile, us)| CurvePoint { quantile, us }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn of_microseconds(latencies: impl IntoIterator<Item = u64>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        latencies.into_iter().for_each(|us| histogram.record(Duration::from_micros(us)));
        histogram
    }

    #[test]
    fn a_curve_runs_from_the_fastest_to_the_slowest() {
        let curve = of_microseconds(1..=100_000).curve();
        assert!(curve.is_sorted_by(|a, b| a.quantile < b.quantile && a.us <= b.us), "{curve:?}");
        for expected in [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999] {
            let point = curve.iter().find(|point| (point.quantile - expected).abs() < 1e-12);
            let point = point.unwrap_or_else(|| panic!("no point at {expected}"));
            assert!((point.us / (expected * 100_000.0) - 1.0).abs() < 0.002, "{point:?}");
        }
        let (first, last) = (curve[0], curve[curve.len() - 1]);
        assert!(first.quantile == 0.0 && first.us <= 1.0, "{first:?}");
        assert!(last.quantile == 1.0 && (last.us / 100_000.0 - 1.0).abs() < 0.002, "{last:?}");
        assert!((curve[curve.len() - 2].quantile - 0.9999).abs() < 1e-12, "ten samples lie beyond it");
    }

    #[test]
    fn few_samples_give_few_points_and_no_number_of_them_gives_a_hundred() {
        assert_eq!(LatencyHistogram::default().curve(), []);
        let quantiles: Vec<f64> = of_microseconds([7]).curve().iter().map(|point| point.quantile).collect();
        assert_eq!(quantiles, [0.0, 1.0]);
        let mut many = of_microseconds([7, 8]);
        for _ in 0..50 {
            many.merge(&many.clone());
        }
        assert_eq!(many.curve().len(), 91);
    }
}
