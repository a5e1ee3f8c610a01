//! The lab's clock. The lab measures elapsed time, so it reads the machine's clock itself, but only here.

use bunko_host::Clock;
use std::time::{Duration, Instant};

/// The machine's clock.
pub(crate) const MACHINE: Clock = Clock::machine();

pub(crate) fn now() -> Instant {
    MACHINE.now()
}

/// Time since `moment`.
pub(crate) fn since(moment: Instant) -> Duration {
    MACHINE.since(moment)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    MACHINE.now_ms()
}
