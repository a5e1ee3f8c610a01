//! How late the generator's machine woke sleeping threads.

use bunko_statistics::{LatencyHistogram, LatencySummary};
use serde::{Deserialize, Serialize};

/// Wake-ups of threads that only slept, one on each processor of the generator's machine. Their delays are caused by
/// the machine, not by a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachinePauses {
    /// Number of threads.
    pub threads: usize,
    /// Scheduling priority of these threads.
    pub priority: SleepPriority,
    /// Number of wake-ups of all threads. If there was less than one per millisecond, each wake-up stands for all
    /// milliseconds until the next.
    pub wake_ups: u64,
    /// User and system time of all threads.
    pub cpu_seconds: f64,
    /// Delay of wake-ups, per millisecond and processor: a pause of 20 ms counts as 20 milliseconds. See [`lateness`].
    pub lateness: LatencySummary,
    /// As [`super::Measurement::histogram`].
    pub histogram: String,
}

/// Scheduling priority of the sleeping threads; a larger one is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SleepPriority {
    /// Ordinary: the delays caused by other threads were subtracted.
    Ordinary,
    /// The highest real-time priority: no other thread delays them.
    RealTime,
}

impl MachinePauses {
    /// Makes it from a histogram of the milliseconds for which `wake_ups` wake-ups stand.
    pub fn new(
        threads: usize,
        priority: SleepPriority,
        wake_ups: u64,
        cpu_seconds: f64,
        milliseconds: &LatencyHistogram,
    ) -> Self {
        let lateness = lateness(milliseconds, wake_ups);
        Self { threads, priority, wake_ups, cpu_seconds, lateness, histogram: milliseconds.encode() }
    }
}

/// Percentiles of the milliseconds for which `wake_ups` wake-ups stand. A percentile is left out unless at least one
/// wake-up lies beyond it. One late wake-up can stand for many milliseconds.
pub fn lateness(milliseconds: &LatencyHistogram, wake_ups: u64) -> LatencySummary {
    let LatencySummary { samples, mean_us, p50_us, p90_us, p99_us, p999_us, p9999_us, max_us } = milliseconds.summary();
    let one_in = |count: u64, percentile: Option<f64>| percentile.filter(|_| wake_ups >= count);
    LatencySummary {
        samples,
        mean_us,
        p50_us: one_in(2, p50_us),
        p90_us: one_in(10, p90_us),
        p99_us: one_in(100, p99_us),
        p999_us: one_in(1_000, p999_us),
        p9999_us: one_in(10_000, p9999_us),
        max_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_percentile_needs_a_wake_up_beyond_it() {
        let mut milliseconds = LatencyHistogram::default();
        (0..20_000).for_each(|_| milliseconds.record(Duration::from_micros(50)));
        let of = |wake_ups| lateness(&milliseconds, wake_ups);
        assert!(of(1_000).p999_us.is_some() && of(1_000).p9999_us.is_none());
        assert!(of(999).p999_us.is_none() && of(999).p99_us.is_some());
        let few = of(9);
        assert!(few.p90_us.is_none() && few.p50_us.is_some() && few.max_us.is_some(), "{few:?}");
        // There are as many wake-ups as milliseconds, so their own rule applies.
        assert_eq!(of(20_000), milliseconds.summary());
    }
}
