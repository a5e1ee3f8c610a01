//! The unit in which the kernel reports most CPU times.

use rustix::param::clock_ticks_per_second;
use std::time::Duration;

/// `USER_HZ` ticks, usually of 10 ms, as time.
pub(crate) fn duration_of_ticks(ticks: u64) -> Duration {
    let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(clock_ticks_per_second());
    Duration::from_nanos(nanoseconds as u64)
}
