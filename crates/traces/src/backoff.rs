//! The pause after a failed attempt.

use std::time::Duration;

/// The first pause at most.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause that is chosen here.
const LONGEST: Duration = Duration::from_secs(32);
/// The longest pause that a collector can ask for.
const ASKED_MAX: Duration = Duration::from_mins(5);

/// Doubles the pause with each failure.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after one more failure: the one that the collector asked for, or a random time within the half and the
    /// whole of a bound that doubles. Without the chance, servers that lost their collector at once would come back at once.
    pub fn after_failure(&mut self, asked: Option<Duration>, random: u64) -> Duration {
        let bound = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        asked.map_or(bound.mul_f64(0.5 + 0.5 * (random as f64 / u64::MAX as f64)), |asked| asked.min(ASKED_MAX))
    }

    /// Begins anew after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..8).map(|_| backoff.after_failure(None, u64::MAX).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 32, 32]);
        assert_eq!(backoff.after_failure(None, 0), Duration::from_secs(16));
        backoff.reset();
        assert_eq!(backoff.after_failure(None, 0), Duration::from_millis(500));
    }

    #[test]
    fn the_collector_may_ask_for_a_pause() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.after_failure(Some(Duration::from_secs(7)), 0), Duration::from_secs(7));
        assert_eq!(backoff.after_failure(Some(Duration::from_hours(24)), 0), ASKED_MAX);
        assert_eq!(backoff.after_failure(None, u64::MAX), Duration::from_secs(4));
    }
}
