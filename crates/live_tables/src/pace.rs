//! Even intervals, however long the readings take.

use bunko_host::Clock;
use std::time::{Duration, Instant};

/// The moments at which servers are read.
pub(crate) struct Pace {
    clock: Clock,
    interval: Duration,
    due: Instant,
}

impl Pace {
    /// Intervals that begin now.
    pub fn new(clock: Clock, interval: Duration) -> Self {
        let due = clock.now();
        Self { clock, interval, due }
    }

    /// Sleeps until the next moment. Moments that passed meanwhile are left out.
    pub fn wait(&mut self) {
        self.due = (self.due + self.interval).max(self.clock.now());
        std::thread::sleep(self.due.saturating_duration_since(self.clock.now()));
    }
}
