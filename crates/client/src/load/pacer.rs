//! When the next request is due.

use super::Arrival;
use std::time::{Duration, Instant};

/// One thread's share of the arrivals.
pub(super) enum Pacer {
    Closed,
    /// Request `i` is due at `start + phase + i * interval`.
    Open {
        start: Instant,
        phase_ns: f64,
        interval_ns: f64,
        issued: u64,
    },
}

impl Pacer {
    /// Thread `index` of `count`: each takes an equal rate, shifted so that together they arrive evenly.
    pub fn new(arrival: Arrival, index: usize, count: usize, start: Instant) -> Self {
        match arrival {
            Arrival::Closed => Self::Closed,
            Arrival::Open(rate) => {
                let interval_ns = 1e9 * count as f64 / rate;
                Self::Open { start, phase_ns: interval_ns * index as f64 / count as f64, interval_ns, issued: 0 }
            }
        }
    }

    /// When the next request was due, if it is due by `now`.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        match self.next_arrival() {
            None => Some(now),
            Some(arrival) => (arrival <= now).then_some(arrival),
        }
    }

    /// The next request's intended start; `None` in a closed loop.
    pub fn next_arrival(&self) -> Option<Instant> {
        match self {
            Self::Closed => None,
            Self::Open { start, phase_ns, interval_ns, issued } => {
                Some(*start + Duration::from_nanos((phase_ns + *issued as f64 * interval_ns) as u64))
            }
        }
    }

    /// Counts a request as made.
    pub fn advance(&mut self) {
        if let Self::Open { issued, .. } = self {
            *issued += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_keep_their_times_however_late_the_server_is() {
        let start = Instant::now();
        let mut pacers: Vec<_> = (0..2).map(|index| Pacer::new(Arrival::Open(1000.0), index, 2, start)).collect();
        let second = start + Duration::from_secs(1);
        let mut arrivals = Vec::new();
        for pacer in &mut pacers {
            while let Some(arrival) = pacer.due(second) {
                arrivals.push(arrival - start);
                pacer.advance();
            }
            assert!(pacer.next_arrival().is_some_and(|arrival| arrival > second));
        }
        arrivals.sort();
        assert_eq!(arrivals, (0..=1000).map(Duration::from_millis).collect::<Vec<_>>());
    }
}
