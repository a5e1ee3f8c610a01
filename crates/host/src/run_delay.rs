//! Time that a runnable thread waited for a processor.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Total time that the calling thread was runnable but waited for a processor. It only grows: subtract two readings.
/// `None` if the kernel keeps no scheduler statistics.
pub fn thread_run_delay() -> Option<Duration> {
    parse_schedstat(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// [`thread_run_delay`] of one thread, for repeated readings.
pub(crate) struct RunDelay(File);

impl RunDelay {
    /// Opens the run delay of the calling thread; `None` if the kernel keeps no scheduler statistics.
    pub fn of_this_thread() -> Option<Self> {
        let delay = Self(File::open("/proc/thread-self/schedstat").ok()?);
        delay.read().map(|_| delay)
    }

    pub fn read(&self) -> Option<Duration> {
        // Three numbers of 64 bits.
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).ok()?;
        parse_schedstat(std::str::from_utf8(&text[..length]).ok()?)
    }
}

/// Reads the second field. The fields are nanoseconds on a processor, nanoseconds waiting for one, and time slices.
/// Source: the kernel's `scheduler/sched-stats.rst`.
fn parse_schedstat(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse_schedstat("92938 112781 2\n"), Some(Duration::from_nanos(112_781)));
        assert_eq!(parse_schedstat("92938"), None);
    }

    #[test]
    fn waits_only_grow() {
        let Some(before) = thread_run_delay() else {
            eprintln!("SKIPPED: this kernel keeps no scheduler statistics");
            return;
        };
        std::thread::yield_now();
        let after = thread_run_delay().expect("as before");
        assert!(after >= before);
        // An open file returns current values, not those of the time when it was opened.
        let delay = RunDelay::of_this_thread().expect("as before");
        std::thread::yield_now();
        assert!(delay.read().is_some_and(|later| later >= after));
    }
}
