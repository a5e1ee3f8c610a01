//! Adapts the number of links that send at the same time: it grows as long as more links are faster.

use std::time::Duration;

/// How long a number of workers is observed before it is judged.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);
/// Factor by which one more worker must raise the rate for another one to be tried.
const GAIN_MIN: f64 = 1.05;
/// Number of intervals after which one more worker is tried again: the source, the documents or the server may have
/// changed.
const SETTLED_INTERVALS: u32 = 40;

/// Measurements of one interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// Acknowledged bytes.
    pub(super) bytes: u64,
    /// Length of the interval.
    pub(super) time: Duration,
    /// Whether anything waited to be sent at the interval's end.
    pub(super) backlog: Backlog,
}

/// Whether anything waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backlog {
    /// The source is slower than the workers.
    None,
    /// The workers are slower than the source.
    Some,
}

/// Decides the number of workers.
pub(super) struct Controller {
    workers: usize,
    workers_max: usize,
    /// Bytes per second when the last worker was added.
    rate_before: f64,
    settled_intervals: u32,
}

impl Controller {
    pub(super) fn new(workers: usize, workers_max: usize) -> Self {
        Self { workers, workers_max, rate_before: 0.0, settled_intervals: 0 }
    }

    /// Returns the number of workers from now on: the present one, or one more.
    pub(super) fn observe(&mut self, observation: Observation) -> usize {
        if observation.backlog == Backlog::None || self.workers >= self.workers_max || observation.bytes == 0 {
            return self.workers;
        }
        let rate = observation.bytes as f64 / observation.time.as_secs_f64().max(1e-6);
        let is_worth_it = rate >= self.rate_before * GAIN_MIN;
        self.settled_intervals += 1;
        if is_worth_it || self.settled_intervals >= SETTLED_INTERVALS {
            self.rate_before = rate;
            self.settled_intervals = 0;
            self.workers += 1;
        }
        self.workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rates: &[u64], backlog: Backlog) -> Vec<usize> {
        let mut controller = Controller::new(2, 4);
        rates.iter().map(|&bytes| controller.observe(Observation { bytes, time: INTERVAL, backlog })).collect()
    }

    #[test]
    fn workers_come_while_each_brings_more() {
        assert_eq!(after(&[100, 150, 200, 300], Backlog::Some), [3, 4, 4, 4]);
        assert_eq!(after(&[100, 101, 102], Backlog::Some), [3, 3, 3]);
        assert_eq!(after(&[0, 100, 200], Backlog::None), [2, 2, 2]);
    }

    #[test]
    fn a_sufficient_setting_is_tried_again() {
        let settled = vec![100; SETTLED_INTERVALS as usize + 1];
        assert_eq!(after(&settled, Backlog::Some).last(), Some(&4));
    }
}
