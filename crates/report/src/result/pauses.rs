//! How late the generator's machine woke those who slept.

use bunko_statistics::{LatencyHistogram, LatencySummary};
use serde::{Deserialize, Serialize};

/// What threads saw that did nothing but sleep, one on each processor of the generator's machine: it, and no server, is
/// what kept them waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachinePauses {
    /// How many threads.
    pub threads: usize,
    /// Who ran before them.
    pub priority: SleepPriority,
    /// How often they were woken, all together. Where that is less than once in a millisecond each wake-up stands for
    /// all milliseconds up to the next.
    pub wake_ups: u64,
    /// Their user and system time, all together.
    pub cpu_seconds: f64,
    /// How late a wake-up was that was due in a millisecond, of all milliseconds and all processors. A pause of 20 ms is
    /// 20 of them. See [`lateness`].
    pub lateness: LatencySummary,
    /// As [`super::Measurement::histogram`].
    pub histogram: String,
}

/// Who ran before threads that slept, once they had been woken; the better the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SleepPriority {
    /// Whoever had the processor; what they waited for that was taken off.
    Ordinary,
    /// Nobody: they had the highest real-time priority.
    RealTime,
}

impl MachinePauses {
    /// What so many wake-ups saw, which speak for these milliseconds.
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

/// The percentiles of milliseconds that so many wake-ups speak for. Beyond each lies at least one wake-up, however many
/// milliseconds it stands for.
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
        // As many as milliseconds: their own rule holds.
        assert_eq!(of(20_000), milliseconds.summary());
    }
}
