//! Flow control: a primary slows writers down while the commit point is far behind.
//!
//! Each write waits for a moment before it begins, holding no lock and no thread. The wait grows while the commit point
//! stays further behind than half of `flowControlTargetLagSeconds`, up to [`WAIT_MAX_US`], and shrinks when it catches
//! up. Statements of a transaction that has begun do not wait, because others wait for what it has changed.
//!
//! A write looks at two atomics. A server that is in no set of several members does not look at them.
//! Source: MongoDB manual 8.2, "Replication Lag", "Flow Control", and `serverStatus`, `flowControl`.

use bunko_bson::Writer;
use bunko_store::{Bell, Listening};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longest wait of one write, in microseconds.
const WAIT_MAX_US: u64 = 250_000;
/// The first wait, and the least by which it grows.
const WAIT_STEP_US: u64 = 500;
/// The least time between two changes of the wait, in milliseconds.
const INTERVAL_MS: u64 = 100;
/// MongoDB's `targetRateLimit` while writers are not slowed down.
const UNLIMITED: i32 = 1_000_000_000;

/// How long writes wait now, and figures for `serverStatus`.
#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    wait_us: AtomicU64,
    /// When the wait was changed last, in milliseconds since the server started.
    changed_ms: AtomicU64,
    /// The lag at that time.
    lag_ms: AtomicU64,
    is_lagged: AtomicBool,
    lagged_count: AtomicU64,
    lagged_us: AtomicU64,
    waited_us: AtomicU64,
    /// Never rung: a wait ends with its time.
    bell: Arc<Bell>,
}

/// The commit point at a moment.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    /// Milliseconds since the server started.
    pub(crate) now_ms: u64,
    /// How far the commit point is behind, in milliseconds.
    pub(crate) lag_ms: u64,
    /// The lag that is allowed, in milliseconds.
    pub(crate) lag_ms_allowed: u64,
}

impl Progress {
    fn is_lagged(self) -> bool {
        self.lag_ms.saturating_mul(2) > self.lag_ms_allowed
    }
}

impl FlowControl {
    /// Whether a write must ask for its wait: the commit point lags, or writes waited before.
    pub(crate) fn may_wait(&self, lag_ms: u64) -> bool {
        lag_ms > 0 || self.wait_us.load(Ordering::Relaxed) > 0
    }

    /// Adds a wait to the counter, and returns its listener, which only the wait's time limit ends.
    pub(crate) fn begin(&self, wait: Duration) -> Listening {
        self.waited_us.fetch_add(wait.as_micros() as u64, Ordering::Relaxed);
        self.bell.after(0)
    }

    /// How long a write waits. The first write after each [`INTERVAL_MS`] adjusts the wait for itself and for later
    /// ones.
    pub(crate) fn wait(&self, progress: Progress) -> Duration {
        let wait_us = self.wait_us.load(Ordering::Relaxed);
        if wait_us == 0 && !progress.is_lagged() {
            return Duration::ZERO;
        }
        let changed_ms = self.changed_ms.load(Ordering::Relaxed);
        let is_due = progress.now_ms >= changed_ms + INTERVAL_MS;
        let changes = || {
            let to = progress.now_ms;
            self.changed_ms.compare_exchange(changed_ms, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        if is_due && changes() {
            self.change(wait_us, progress, progress.now_ms - changed_ms);
        }
        Duration::from_micros(self.wait_us.load(Ordering::Relaxed))
    }

    fn change(&self, wait_us: u64, progress: Progress, elapsed_ms: u64) {
        let had_ms = self.lag_ms.swap(progress.lag_ms, Ordering::Relaxed);
        let is_worse = progress.lag_ms > progress.lag_ms_allowed || progress.lag_ms >= had_ms;
        let next_us = match (progress.is_lagged(), is_worse) {
            (true, true) => (wait_us + (wait_us / 2).max(WAIT_STEP_US)).min(WAIT_MAX_US),
            (true, false) => wait_us - wait_us / 4,
            (false, _) => 0,
        };
        self.wait_us.store(next_us, Ordering::Relaxed);
        let was_lagged = self.is_lagged.swap(progress.is_lagged(), Ordering::Relaxed);
        if was_lagged {
            self.lagged_us.fetch_add(elapsed_ms.saturating_mul(1000), Ordering::Relaxed);
        } else if progress.is_lagged() {
            self.lagged_count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl FlowControl {
    /// Appends the section of `serverStatus`. Without a target there is no flow control.
    pub(crate) fn write(&self, lag_ms: u64, target_ms: Option<u64>, out: &mut Writer<'_>) {
        let is_lagged =
            target_ms.is_some_and(|target_ms| Progress { now_ms: 0, lag_ms, lag_ms_allowed: target_ms }.is_lagged());
        let wait_us = if target_ms.is_some() { self.wait_us.load(Ordering::Relaxed) } else { 0 };
        // Each client sends its next write after the reply to the last one, so it makes one write in each wait.
        let rate = if wait_us == 0 { UNLIMITED } else { (1_000_000 / wait_us as i32).max(1) };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as i64;
        out.append("enabled", target_ms.is_some())
            .append("targetRateLimit", rate)
            .append("timeAcquiringMicros", count(&self.waited_us))
            .append("locksPerKiloOp", 0.0)
            .append("sustainerRate", 0)
            .append("isLagged", is_lagged)
            .append("isLaggedCount", count(&self.lagged_count) as i32)
            .append("isLaggedTimeMicros", count(&self.lagged_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_wait_while_the_commit_point_is_far_behind_and_no_longer() {
        let flow = FlowControl::default();
        let wait = |now_ms, lag_ms| flow.wait(Progress { now_ms, lag_ms, lag_ms_allowed: 10_000 });
        assert_eq!([wait(1000, 0), wait(2000, 5000)], [Duration::ZERO; 2]);
        let mut last = Duration::ZERO;
        for step in 0..40 {
            let now = wait(3000 + step * 100, 5001 + step * 100);
            assert!(now > last || now == Duration::from_micros(WAIT_MAX_US), "{now:?} after {last:?}");
            // Not twice within an interval.
            assert_eq!(wait(3000 + step * 100 + 50, 9000), now);
            last = now;
        }
        assert_eq!(last, Duration::from_micros(WAIT_MAX_US));
        assert!(wait(9000, 6000) < last);
        assert_eq!([wait(9200, 4000), wait(9300, 0)], [Duration::ZERO; 2]);
        assert_eq!((flow.lagged_count.load(Ordering::Relaxed), flow.is_lagged.load(Ordering::Relaxed)), (1, false));
        assert!(flow.lagged_us.load(Ordering::Relaxed) >= 4_000_000);
    }
}
