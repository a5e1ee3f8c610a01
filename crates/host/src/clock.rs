//! The clock that is passed to everything below `cli`: the machine's, or one that a test sets.
//!
//! A wait that needs no deadline of its own does without a clock: condition variables and sockets take a duration.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where time is read. Clones share the same time.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Machine,
    /// A clock whose date comes from a function, and whose elapsed time is the machine's.
    Dated(Arc<dyn Fn() -> u64 + Send + Sync>),
    Standing(Arc<Standing>),
}

struct Standing {
    began: Instant,
    began_ms: u64,
    advanced_ns: AtomicU64,
}

impl Standing {
    fn advanced(&self) -> Duration {
        Duration::from_nanos(self.advanced_ns.load(Ordering::SeqCst))
    }
}

impl Clock {
    /// The machine's clock.
    pub const fn machine() -> Self {
        Self(Source::Machine)
    }

    /// A clock whose date, in milliseconds since 1970, is what `date_ms` returns. Elapsed time is the machine's, so all
    /// waits end.
    pub fn dated(date_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Source::Dated(Arc::new(date_ms)))
    }

    /// A clock that stands at `now_ms`, in milliseconds since 1970, until [`Self::advance`] moves it.
    pub fn standing(now_ms: u64) -> Self {
        let standing = Standing { began: Instant::now(), began_ms: now_ms, advanced_ns: AtomicU64::new(0) };
        Self(Source::Standing(Arc::new(standing)))
    }

    /// The present moment, to measure elapsed time from.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::Machine | Source::Dated(_) => Instant::now(),
            Source::Standing(standing) => standing.began + standing.advanced(),
        }
    }

    /// The date, as the time since 1970.
    pub fn since_1970(&self) -> Duration {
        match &self.0 {
            Source::Machine => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            Source::Dated(date_ms) => Duration::from_millis(date_ms()),
            Source::Standing(standing) => Duration::from_millis(standing.began_ms) + standing.advanced(),
        }
    }

    /// As [`Self::since_1970`], in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.since_1970().as_millis() as u64
    }

    /// Time since `moment`; zero if it is ahead.
    pub fn since(&self, moment: Instant) -> Duration {
        self.now().saturating_duration_since(moment)
    }

    /// Moves a standing clock forward.
    /// # Panics
    /// If the clock runs.
    pub fn advance(&self, time: Duration) {
        let Source::Standing(standing) = &self.0 else { panic!("a clock that runs cannot be moved") };
        standing.advanced_ns.fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Source::Machine => "Clock(machine)",
            Source::Dated(_) => "Clock(dated)",
            Source::Standing(_) => "Clock(standing)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_clock_moves_only_by_hand_and_its_clones_move_with_it() {
        let clock = Clock::standing(1_000);
        let (clone, began) = (clock.clone(), clock.now());
        assert_eq!((clone.now(), clone.now_ms()), (began, 1_000));
        clock.advance(Duration::from_millis(1_500));
        assert_eq!((clone.since(began), clone.now_ms()), (Duration::from_millis(1_500), 2_500));
        assert_eq!(clone.since(clone.now() + Duration::from_secs(1)), Duration::ZERO, "a moment ahead");
    }

    #[test]
    fn a_dated_clock_takes_only_its_date_from_the_function() {
        let clock = Clock::dated(|| 7);
        let (before, now, after) = (Instant::now(), clock.now(), Instant::now());
        assert!(before <= now && now <= after);
        assert_eq!(clock.now_ms(), 7);
    }
}
