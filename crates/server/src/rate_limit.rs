//! The rate limit of new connections: a token bucket, and a queue for connections that find no token.

use bunko_settings::ConnectionRate;
use std::time::{Duration, Instant};

/// The decision about a new connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RateDecision {
    Now,
    /// The connection is served after that time.
    After(Duration),
    /// The queue is full.
    Refused,
}

/// A bucket that holds the tokens of [`ConnectionRate::burst_seconds`]. It may owe one token for each waiting
/// connection.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// Negative while connections wait.
    tokens: f64,
    filled_at: Instant,
    /// The rate of the last call; another rate refills the bucket.
    rate: Option<ConnectionRate>,
}

impl RateLimit {
    pub fn new(now: Instant) -> Self {
        Self { tokens: 0.0, filled_at: now, rate: None }
    }

    /// Takes a token for a connection that arrives `now`.
    pub fn take(&mut self, rate: ConnectionRate, now: Instant) -> RateDecision {
        let capacity = (rate.per_second * rate.burst_seconds).max(1.0);
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.filled_at = now;
        if self.rate == Some(rate) {
            self.tokens = (self.tokens + elapsed * rate.per_second).min(capacity);
        } else {
            (self.rate, self.tokens) = (Some(rate), capacity);
        }
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return RateDecision::Now;
        }
        // An owed token belongs to a waiting connection.
        let waiting = (1.0 - self.tokens).ceil();
        if waiting > rate.queue_max as f64 {
            return RateDecision::Refused;
        }
        self.tokens -= 1.0;
        RateDecision::After(Duration::from_secs_f64(-self.tokens / rate.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: ConnectionRate = ConnectionRate { per_second: 10.0, burst_seconds: 0.2, queue_max: 2 };

    #[test]
    fn a_burst_is_served_the_next_wait_and_the_rest_is_refused() {
        let began = Instant::now();
        let mut limit = RateLimit::new(began);
        let mut take = |after_ms| limit.take(RATE, began + Duration::from_millis(after_ms));
        assert_eq!((take(0), take(0)), (RateDecision::Now, RateDecision::Now));
        assert_eq!(take(0), RateDecision::After(Duration::from_millis(100)));
        assert_eq!(take(0), RateDecision::After(Duration::from_millis(200)));
        assert_eq!(take(0), RateDecision::Refused);
        // A tenth of a second brings one token, which was owed.
        let RateDecision::After(wait) = take(100) else { panic!("it waits") };
        assert_eq!(wait.as_millis(), 200);
        assert_eq!(take(100), RateDecision::Refused);
        assert_eq!((take(10_000), take(10_000)), (RateDecision::Now, RateDecision::Now));
        assert!(matches!(take(10_000), RateDecision::After(_)));
    }

    #[test]
    fn without_a_queue_no_client_waits_and_another_rate_starts_over() {
        let began = Instant::now();
        let mut limit = RateLimit::new(began);
        let narrow = ConnectionRate { burst_seconds: 0.0, queue_max: 0, ..RATE };
        assert_eq!((limit.take(narrow, began), limit.take(narrow, began)), (RateDecision::Now, RateDecision::Refused));
        // A fraction of a token does not count.
        assert_eq!(limit.take(narrow, began + Duration::from_millis(50)), RateDecision::Refused);
        assert_eq!(limit.take(RATE, began), RateDecision::Now);
    }
}
