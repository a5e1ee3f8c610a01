//! The trend of the slowest latencies within one run.

use crate::result::Interval;
use bunko_statistics::{LatencyHistogram, Trend};

/// Maximum number of parts of a run, each with a percentile of its own. More parts would be shorter, and neighbours
/// more alike.
const PARTS_MAX: usize = 60;
/// Minimum number of parts; fewer show no trend.
const PARTS_MIN: usize = 10;
/// A shorter interval is left out: the last one of a run may be shorter than a second, and does not compare with whole
/// ones.
const WHOLE_SECONDS: f64 = 0.999;

/// The trend of p99.9 in microseconds, over parts of equal length that have requests enough for it. `None` where a run
/// has no ten such parts, or its seconds have no histograms.
pub fn p999_trend(intervals: &[Interval]) -> Option<Trend> {
    let whole = intervals.iter().filter(|interval| interval.seconds >= WHOLE_SECONDS);
    let seconds: Option<Vec<LatencyHistogram>> =
        whole.map(|interval| LatencyHistogram::decode(interval.histogram.as_deref()?).ok()).collect();
    let seconds = seconds?;
    let shortest = seconds.len().div_ceil(PARTS_MAX).max(1);
    let parts = |length: usize| -> Option<Vec<f64>> {
        seconds.chunks_exact(length).map(|part| merged(part).summary().p999_us).collect()
    };
    (shortest..=seconds.len() / PARTS_MIN).find_map(parts).and_then(|series| Trend::of(&series))
}

/// Histograms added up.
pub(crate) fn merged(histograms: &[LatencyHistogram]) -> LatencyHistogram {
    let mut sum = LatencyHistogram::default();
    for histogram in histograms {
        sum.merge(histogram);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Seconds with `requests` requests each. One request in 500 takes as long as `tail_us` returns for its second.
    fn intervals(seconds: u32, requests: u32, tail_us: impl Fn(u32) -> u64) -> Vec<Interval> {
        let interval = |second: u32| {
            let mut histogram = LatencyHistogram::default();
            for request in 0..requests {
                let us = if request % 500 == 0 { tail_us(second) } else { 200 };
                histogram.record(Duration::from_micros(us));
            }
            Interval {
                at_seconds: f64::from(second),
                seconds: 1.0,
                requests: requests.into(),
                documents: requests.into(),
                errors: 0,
                latency: histogram.summary(),
                histogram: Some(histogram.encode()),
            }
        };
        (0..seconds).map(interval).collect()
    }

    #[test]
    fn a_tail_that_grows_is_seen_and_a_level_one_is_level() {
        let growing = p999_trend(&intervals(30, 10_000, |second| 2_000 + 100 * u64::from(second))).expect("a trend");
        assert!(growing.rises_by_more_than(1.0) && (growing.from / 2_000.0 - 1.0).abs() < 0.01, "{growing:?}");
        let level = p999_trend(&intervals(30, 10_000, |second| 2_000 + u64::from(second % 3))).expect("a trend");
        assert!(!level.rises_by_more_than(0.01), "{level:?}");
    }

    #[test]
    fn few_requests_a_second_make_longer_parts_and_too_few_none() {
        // 1,000 a second fill p99.9's 10,000 in ten seconds.
        assert!(p999_trend(&intervals(100, 1_000, |_| 2_000)).is_some());
        assert_eq!(p999_trend(&intervals(90, 1_000, |_| 2_000)), None);
        assert_eq!(p999_trend(&intervals(9, 20_000, |_| 2_000)), None);
        assert_eq!(p999_trend(&[]), None);
    }
}
