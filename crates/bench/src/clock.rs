//! The lab's clocks. The lab measures elapsed time, so it reads them itself, but only here.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Time since 1970.
pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    wall().as_millis() as u64
}
