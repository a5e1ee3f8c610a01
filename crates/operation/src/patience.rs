//! Time limits of an operation on a thread.

use bunko_host::Clock;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Time limit on a thread that serves other clients.
pub(crate) const SHARED: Duration = Duration::from_millis(1);
/// Limit of processor time on a spare thread. Larger than the limit on a shared thread, which also counts time that
/// other threads had the processor.
pub(crate) const SPARE: Duration = Duration::from_millis(2);

/// The kind of thread that an operation runs on. A failure [`bunko_errors::Failure::too_long`] makes it leave the first
/// two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOn {
    /// A thread that serves other connections: the operation must leave it soon.
    SharedThread,
    /// A thread kept for commands that may turn out short while many others wait for threads of their own. The operation
    /// may use little processor time there, but waiting for other operations does not count.
    SpareThread,
    /// A thread of its own, without a time limit.
    OwnThread,
}

/// When an operation must leave its thread. An operation that has changed something never must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The operation may stay on its thread to its end.
    Endless,
    /// At that time, even if other threads had the processor meanwhile.
    Until(Instant),
    /// Once the thread's processor time reaches `used`, which cannot be before `not_before`.
    ProcessorTime { used: Duration, not_before: Instant },
}

impl Patience {
    /// The limit on such a thread for an operation that started at `began`.
    pub(crate) fn at(run_on: RunOn, began: Instant, clock: &Clock) -> Self {
        match run_on {
            RunOn::SharedThread => Self::Until(began + SHARED),
            RunOn::SpareThread => Self::ProcessorTime { used: thread_time() + SPARE, not_before: clock.now() + SPARE },
            RunOn::OwnThread => Self::Endless,
        }
    }

    /// Whether the limit is reached. Reads the processor time, which is a system call, only when the limit may be
    /// reached.
    pub(crate) fn is_over(&mut self, clock: &Clock) -> bool {
        match self {
            Self::Endless => false,
            Self::Until(end) => clock.now() >= *end,
            Self::ProcessorTime { used, not_before } => {
                let now = clock.now();
                if now < *not_before {
                    return false;
                }
                let left = used.saturating_sub(thread_time());
                *not_before = now + left;
                left.is_zero()
            }
        }
    }

    /// Until when the operation may wait for another one; `None` without a limit.
    pub(crate) fn end(&self) -> Option<Instant> {
        match *self {
            Self::Endless => None,
            Self::Until(end) | Self::ProcessorTime { not_before: end, .. } => Some(end),
        }
    }
}

/// The processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_spare_thread_the_time_of_others_does_not_count() {
        let clock = Clock::standing(0);
        let mut patience = Patience::at(RunOn::SpareThread, clock.now(), &clock);
        let Patience::ProcessorTime { used, .. } = patience else { panic!("{patience:?}") };
        clock.advance(2 * SPARE);
        assert_eq!(patience.is_over(&clock), thread_time() >= used, "only this thread's time counts");
        while thread_time() < used {
            std::hint::spin_loop();
        }
        clock.advance(2 * SPARE);
        assert!(patience.is_over(&clock) && patience.is_over(&clock), "for good");
    }
}
