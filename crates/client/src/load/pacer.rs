//! When the next request is due.

use super::Arrival;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

/// One thread's share of the arrivals.
pub(super) enum Pacer {
    Closed,
    /// Request `i` is due at `start + phase + i * interval`.
    Constant {
        start: Instant,
        phase_ns: f64,
        interval_ns: f64,
        issued: u64,
    },
    Poisson {
        next: Instant,
        interval_ns: f64,
        random: Xoshiro256PlusPlus,
    },
}

impl Pacer {
    /// The share of thread `index` of `count`: each has an equal rate. Constant arrivals are shifted so that the
    /// threads together arrive evenly.
    pub fn new(arrival: Arrival, index: usize, count: usize, start: Instant) -> Self {
        match arrival {
            Arrival::Closed => Self::Closed,
            Arrival::Constant(rate) => {
                let interval_ns = 1e9 * count as f64 / rate;
                Self::Constant { start, phase_ns: interval_ns * index as f64 / count as f64, interval_ns, issued: 0 }
            }
            Arrival::Poisson { rate, seed } => {
                let random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(index as u64));
                let mut pacer = Self::Poisson { next: start, interval_ns: 1e9 * count as f64 / rate, random };
                pacer.advance();
                pacer
            }
        }
    }

    /// Time of the next request, if it is due by `now`.
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
            Self::Constant { start, phase_ns, interval_ns, issued } => {
                Some(*start + Duration::from_nanos((phase_ns + *issued as f64 * interval_ns) as u64))
            }
            Self::Poisson { next, .. } => Some(*next),
        }
    }

    /// Counts a request as made.
    pub fn advance(&mut self) {
        match self {
            Self::Closed => {}
            Self::Constant { issued, .. } => *issued += 1,
            Self::Poisson { next, interval_ns, random } => {
                // 53 random bits, never 0: the logarithm stays finite.
                let uniform = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                *next += Duration::from_nanos((-uniform.ln() * *interval_ns) as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_keep_their_times_however_late_the_server_is() {
        let start = Instant::now();
        let mut pacers: Vec<_> = (0..2).map(|index| Pacer::new(Arrival::Constant(1000.0), index, 2, start)).collect();
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

    #[test]
    fn a_poisson_stream_keeps_its_rate_and_varies_as_it_should() {
        let start = Instant::now();
        let mut distances = Vec::new();
        for index in 0..4 {
            let mut pacer = Pacer::new(Arrival::Poisson { rate: 1000.0, seed: 7 }, index, 4, start);
            let mut before = start;
            while let Some(arrival) = pacer.due(start + Duration::from_secs(100)) {
                distances.push((arrival - before).as_secs_f64());
                before = arrival;
                pacer.advance();
            }
        }
        let count = distances.len() as f64;
        assert!((99_000.0..101_000.0).contains(&count), "{count} arrivals in 100 s");
        let mean = distances.iter().sum::<f64>() / count;
        let variance = distances.iter().map(|distance| (distance - mean).powi(2)).sum::<f64>() / count;
        // An exponential distribution's deviation is its mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{} over {mean}", variance.sqrt());
    }
}
