//! How late this machine wakes sleeping threads.
//!
//! A hypervisor that wakes a halted processor late, or lets another machine run on it, stops every thread there. To a
//! client that looks like a slow server. A thread that does nothing but sleep measures such pauses alone.

use crate::raw_calls;
use crate::run_delay::RunDelay;
use rustix::io::Errno;
use rustix::thread::{
    ClockId, CpuSet, Timespec, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};
use rustix::time::clock_gettime;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum number of processors that are watched.
const PROCESSORS_MAX: usize = 256;
const NANOSECONDS_PER_MILLISECOND: u64 = 1_000_000;
/// Longest interval between two wake-ups of a sleeper, in milliseconds.
const INTERVAL_MS_MAX: u64 = 20;
/// Interval until the cost of a wake-up is known, in milliseconds.
const INTERVAL_MS_FIRST: u64 = 10;
/// Share of its processor that a sleeper may use. The interrupts that wake it come on top and are charged to no thread:
/// together they stay below 0.3 %.
const COST_MAX: f64 = 0.002;
/// Number of wake-ups after which a sleeper measures its cost again.
const WAKE_UPS_PER_LOOK: u64 = 10;

/// The processors that this process may use; only the first 256 where there are more.
pub fn usable_processors() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).take(PROCESSORS_MAX).collect()
}

/// Threads that run before a sleeper that has been woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepPriority {
    /// None: the sleeper has the highest real-time priority (SCHED_FIFO) that it may have.
    RealTime,
    /// Any running thread. The time that the sleeper waited for a processor is subtracted.
    Ordinary,
}

/// A thread that sleeps on one processor.
pub struct Sleeper {
    /// Run delay of a sleeper at ordinary priority.
    queued: Option<RunDelay>,
}

/// Work that a sleeper did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slept {
    /// Number of wake-ups.
    pub wake_ups: u64,
    /// User and system time of the sleeper itself.
    pub cpu: Duration,
}

impl Sleeper {
    /// Turns the calling thread into a sleeper for good, bound to that processor if allowed. `None` if it may neither
    /// run before others nor read how long it waited for them.
    pub fn on(processor: usize) -> Option<Self> {
        let mut only = CpuSet::new();
        only.set(processor);
        // If the processor was taken away meanwhile, the others are still watched.
        let _ = sched_setaffinity(None, &only);
        if raw_calls::run_before_others().is_ok() {
            return Some(Self { queued: None });
        }
        // The kernel wakes ordinary threads up to 50 us late on purpose, to wake several at once.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        RunDelay::of_this_thread().map(|delay| Self { queued: Some(delay) })
    }

    /// The sleeper's priority over other threads.
    pub fn priority(&self) -> SleepPriority {
        match self.queued {
            None => SleepPriority::RealTime,
            Some(_) => SleepPriority::Ordinary,
        }
    }

    /// Sleeps and wakes until `stop` is set, which it notices after at most 20 ms. Wake-ups are a millisecond apart, or
    /// further if the thread would use more than 0.2 % of its processor: under some hypervisors each wake-up costs 30
    /// us.
    ///
    /// `late` is called for each millisecond with the lateness of the wake-up that was due in it. Wake-ups that were
    /// missed while the machine stood still count, too: a wake-up that is 20 ms late counts as 20 late ones. Where
    /// wake-ups are several milliseconds apart, each counts for all milliseconds up to the next.
    pub fn sleep(self, stop: &AtomicBool, mut late: impl FnMut(Duration)) -> Slept {
        let cpu_before = nanoseconds(ClockId::ThreadCPUTime);
        let mut calendar = Calendar::beginning(nanoseconds(ClockId::Monotonic));
        let (mut wake_ups, mut queued) = (0, self.queued());
        while !stop.load(Ordering::Relaxed) {
            match clock_nanosleep_absolute(ClockId::Monotonic, &timespec(calendar.due_ns)) {
                // A signal wakes the sleeper early; the calendar ignores wake-ups before their time.
                Ok(()) | Err(Errno::INTR) => {}
                // At the highest priority, a loop that never sleeps would block its processor.
                Err(_) => break,
            }
            let woken_ns = nanoseconds(ClockId::Monotonic);
            let queued_before = std::mem::replace(&mut queued, self.queued());
            let waited = queued.saturating_sub(queued_before);
            calendar.wake_up(woken_ns, woken_ns.saturating_sub(waited.as_nanos() as u64), &mut late);
            wake_ups += 1;
            if wake_ups % WAKE_UPS_PER_LOOK == 0 {
                calendar.interval_ms = interval_ms((nanoseconds(ClockId::ThreadCPUTime) - cpu_before) / wake_ups);
            }
        }
        Slept { wake_ups, cpu: Duration::from_nanos(nanoseconds(ClockId::ThreadCPUTime) - cpu_before) }
    }

    /// Total time that the thread was runnable but not running; zero at real-time priority.
    fn queued(&self) -> Duration {
        self.queued.as_ref().and_then(RunDelay::read).unwrap_or_default()
    }
}

/// The time of a sleeper's next wake-up.
struct Calendar {
    due_ns: u64,
    interval_ms: u64,
}

impl Calendar {
    fn beginning(now_ns: u64) -> Self {
        let interval_ms = INTERVAL_MS_FIRST;
        Self { due_ns: now_ns + interval_ms * NANOSECONDS_PER_MILLISECOND, interval_ms }
    }

    /// Enters a wake-up: the sleeper could run from `ready_ns` on, and ran at `woken_ns`.
    fn wake_up(&mut self, woken_ns: u64, ready_ns: u64, late: &mut impl FnMut(Duration)) {
        while self.due_ns <= woken_ns {
            let lateness = Duration::from_nanos(ready_ns.saturating_sub(self.due_ns));
            (0..self.interval_ms).for_each(|_| late(lateness));
            self.due_ns += self.interval_ms * NANOSECONDS_PER_MILLISECOND;
        }
    }
}

/// The shortest interval that keeps wake-ups at `cost_ns` each within [`COST_MAX`].
fn interval_ms(cost_ns: u64) -> u64 {
    let affordable = cost_ns as f64 / COST_MAX / NANOSECONDS_PER_MILLISECOND as f64;
    (affordable.ceil() as u64).clamp(1, INTERVAL_MS_MAX)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn timespec(nanoseconds: u64) -> Timespec {
    let second = 1_000_000_000;
    Timespec { tv_sec: (nanoseconds / second) as i64, tv_nsec: (nanoseconds % second) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const MS: u64 = NANOSECONDS_PER_MILLISECOND;

    /// The lateness that a calendar reports for a wake-up, in microseconds.
    fn lateness_us(calendar: &mut Calendar, woken_ns: u64, ready_ns: u64) -> Vec<u128> {
        let mut late = Vec::new();
        calendar.wake_up(woken_ns, ready_ns, &mut |lateness| late.push(lateness.as_micros()));
        late
    }

    #[test]
    fn a_pause_counts_for_every_wake_up_that_was_missed() {
        let mut calendar = Calendar { due_ns: MS, interval_ms: 1 };
        assert_eq!(lateness_us(&mut calendar, MS + 50_000, MS + 50_000), [50]);
        // Due at 2 ms, woken at 6.1 ms.
        let woken = 6 * MS + 100_000;
        assert_eq!(lateness_us(&mut calendar, woken, woken), [4_100, 3_100, 2_100, 1_100, 100]);
        assert_eq!(calendar.due_ns, 7 * MS);
        assert_eq!(lateness_us(&mut calendar, 6 * MS + 500_000, 6 * MS + 500_000), [0; 0], "a signal, not its time");
    }

    #[test]
    fn waiting_for_a_processor_is_no_pause() {
        let mut calendar = Calendar { due_ns: MS, interval_ms: 1 };
        // Ready 200 us after its time, then 3 ms behind other threads.
        assert_eq!(lateness_us(&mut calendar, 4 * MS + 200_000, MS + 200_000), [200, 0, 0, 0]);
    }

    #[test]
    fn a_wake_up_speaks_for_the_milliseconds_up_to_the_next() {
        let mut calendar = Calendar { due_ns: MS, interval_ms: 3 };
        assert_eq!(lateness_us(&mut calendar, MS + 70_000, MS + 70_000), [70, 70, 70]);
        assert_eq!(lateness_us(&mut calendar, 8 * MS, 8 * MS), [4_000, 4_000, 4_000, 1_000, 1_000, 1_000]);
        assert_eq!(calendar.due_ns, 10 * MS);
    }

    #[test]
    fn wake_ups_that_cost_more_are_rarer() {
        assert_eq!([0, 1_900, 2_000, 2_100, 27_000, 1_000_000].map(interval_ms), [1, 1, 1, 2, 14, 20]);
    }

    #[test]
    fn this_machine_is_watched() {
        let processors = usable_processors();
        assert!(!processors.is_empty());
        let stop = AtomicBool::new(false);
        let began = Instant::now();
        let (slept, milliseconds, longest) = std::thread::scope(|scope| {
            let watched = scope.spawn(|| {
                let Some(sleeper) = Sleeper::on(processors[processors.len() - 1]) else { return (None, 0, None) };
                let (mut milliseconds, mut longest) = (0, Duration::ZERO);
                let slept = sleeper.sleep(&stop, |late| {
                    milliseconds += 1;
                    longest = longest.max(late);
                });
                (Some(slept), milliseconds, Some(longest))
            });
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            watched.join().expect("it does not panic")
        });
        let (Some(slept), Some(longest)) = (slept, longest) else {
            eprintln!("SKIPPED: neither real-time priority nor scheduler statistics");
            return;
        };
        let elapsed_ms = began.elapsed().as_millis() as u64;
        // The last wake-up also counts for milliseconds that have not passed yet.
        assert!((250..=elapsed_ms + INTERVAL_MS_MAX).contains(&milliseconds), "{milliseconds} of {elapsed_ms} ms");
        assert!(slept.wake_ups >= 5 && slept.wake_ups <= milliseconds, "{slept:?}");
        assert!(longest > Duration::ZERO && slept.cpu < began.elapsed() / 10, "{slept:?}, longest {longest:?}");
    }
}
