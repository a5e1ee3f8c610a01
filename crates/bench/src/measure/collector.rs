//! The seconds of all generator threads, added up.

use super::recorder::Second;
use bunko_report::result::Interval;
use bunko_statistics::LatencyHistogram;
use std::collections::BTreeMap;

/// Totals of all threads' replies.
#[derive(Default)]
pub(super) struct Collector {
    seconds: BTreeMap<u64, Total>,
}

#[derive(Default)]
struct Total {
    latency: LatencyHistogram,
    requests: u64,
    documents: u64,
    errors: u64,
    begun_anew: u64,
}

/// The sums over a whole run.
#[derive(Default)]
pub(super) struct Sums {
    pub latency: LatencyHistogram,
    pub requests: u64,
    pub documents: u64,
    pub errors: u64,
    pub begun_anew: u64,
}

impl Collector {
    /// Adds one thread's second.
    pub fn add(&mut self, second: &Second) {
        let total = self.seconds.entry(second.number).or_default();
        total.latency.merge(&second.latency);
        total.requests += second.requests;
        total.documents += second.documents;
        total.errors += second.errors;
        total.begun_anew += second.begun_anew;
    }

    /// The last second that any thread has reported, for the progress line: requests and their latencies.
    pub fn latest(&self) -> Option<(u64, &LatencyHistogram)> {
        self.seconds.values().next_back().map(|total| (total.requests, &total.latency))
    }

    /// Requests answered until now.
    pub fn requests(&self) -> u64 {
        self.seconds.values().map(|total| total.requests).sum()
    }

    /// Adds up all seconds.
    pub fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for total in self.seconds.values() {
            sums.latency.merge(&total.latency);
            sums.requests += total.requests;
            sums.documents += total.documents;
            sums.errors += total.errors;
            sums.begun_anew += total.begun_anew;
        }
        sums
    }

    /// One interval per second of a run of that length. A second without replies gives an interval of zeros.
    pub fn intervals(&self, elapsed_seconds: f64) -> Vec<Interval> {
        let count = (elapsed_seconds.ceil() as u64).max(self.seconds.keys().next_back().map_or(0, |last| last + 1));
        let empty = Total::default();
        let interval = |number: u64| {
            let total = self.seconds.get(&number).unwrap_or(&empty);
            Interval {
                at_seconds: number as f64,
                seconds: (elapsed_seconds - number as f64).clamp(f64::MIN_POSITIVE, 1.0),
                requests: total.requests,
                documents: total.documents,
                errors: total.errors,
                latency: total.latency.summary(),
                histogram: Some(total.latency.encode()),
            }
        };
        (0..count).map(interval).collect()
    }
}
