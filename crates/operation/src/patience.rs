//! How long an operation may stay on a thread.

use crate::Place;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// How long it may work on a thread that serves others.
pub(crate) const SHARED: Duration = Duration::from_millis(1);
/// How much of a processor it may have on a spare thread. More than on a shared one, where it counts what others had
/// meanwhile too.
pub(crate) const SPARE: Duration = Duration::from_millis(2);

/// When an operation is sent away, which nobody does for good once it has changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It may stay.
    Endless,
    /// Then, whoever had the processors meanwhile.
    Until(Instant),
    /// Once the thread has had so much of a processor, in all; it cannot have had that before the moment.
    ProcessorTime { used: Duration, not_before: Instant },
}

impl Patience {
    /// That of a place where this thread works for an operation that began a while ago.
    pub(crate) fn at(place: Place, began: Instant) -> Self {
        match place {
            Place::SharedThread => Self::Until(began + SHARED),
            Place::SpareThread => {
                Self::ProcessorTime { used: thread_time() + SPARE, not_before: Instant::now() + SPARE }
            }
            Place::OwnThread => Self::Endless,
        }
    }

    /// Whether it has ended. Reads the thread's clock once in a while only, which is a call of the system.
    pub(crate) fn is_over(&mut self) -> bool {
        match self {
            Self::Endless => false,
            Self::Until(end) => Instant::now() >= *end,
            Self::ProcessorTime { used, not_before } => {
                let now = Instant::now();
                if now < *not_before {
                    return false;
                }
                let left = used.saturating_sub(thread_time());
                *not_before = now + left;
                left.is_zero()
            }
        }
    }

    /// Until when it may wait for somebody else, if there is a limit.
    pub(crate) fn end(&self) -> Option<Instant> {
        match *self {
            Self::Endless => None,
            Self::Until(end) | Self::ProcessorTime { not_before: end, .. } => Some(end),
        }
    }
}

/// What this thread has had of the processors.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_spare_thread_the_time_of_others_does_not_count() {
        let mut patience = Patience::at(Place::SpareThread, Instant::now());
        std::thread::sleep(2 * SPARE);
        assert!(!patience.is_over(), "it slept");
        let began = thread_time();
        while !patience.is_over() {
            std::hint::spin_loop();
        }
        assert!(thread_time().saturating_sub(began) > SPARE / 2);
        assert!(patience.is_over(), "for good");
    }
}
