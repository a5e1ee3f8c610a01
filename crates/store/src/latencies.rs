//! Counts of durations, in powers of two.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The last bucket holds everything from about 34 s on.
const BUCKETS: usize = 26;

/// Counts by duration: bucket `n` begins at 2^n microseconds, the first at zero.
#[derive(Default)]
pub(crate) struct Latencies {
    counts: [AtomicU64; BUCKETS],
    total_micros: AtomicU64,
    max_micros: AtomicU64,
}

/// Counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Beginning of each non-empty bucket, in microseconds, with its count.
    pub buckets: Vec<(u64, u64)>,
    /// Sum of all durations, in microseconds.
    pub total_micros: u64,
    /// Longest duration, in microseconds.
    pub max_micros: u64,
}

impl LatencyCounts {
    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

impl Latencies {
    pub fn record(&self, duration: Duration) {
        let micros = duration.as_micros() as u64;
        let bucket = (u64::BITS - micros.leading_zeros()).saturating_sub(1) as usize;
        self.counts[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.total_micros.fetch_add(micros, Ordering::Relaxed);
        self.max_micros.fetch_max(micros, Ordering::Relaxed);
    }

    pub fn counts(&self) -> LatencyCounts {
        let begin = |bucket: usize| if bucket == 0 { 0 } else { 1 << bucket };
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        LatencyCounts {
            buckets: counts.enumerate().filter(|(_, count)| *count > 0).map(|(at, count)| (begin(at), count)).collect(),
            total_micros: self.total_micros.load(Ordering::Relaxed),
            max_micros: self.max_micros.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_powers_of_two() {
        let latencies = Latencies::default();
        for micros in [0, 1, 2, 3, 4, 1023, 1024, u64::MAX] {
            latencies.record(Duration::from_micros(micros));
        }
        let counts = latencies.counts();
        assert_eq!(counts.buckets, [(0, 2), (2, 2), (4, 1), (512, 1), (1024, 1), (1 << 25, 1)]);
        assert_eq!((counts.count(), counts.max_micros), (8, u64::MAX));
    }
}
