//! How long a thread that could run had to wait for a processor.

use std::fs;
use std::time::Duration;

/// Time that the calling thread was ready to run but waited for a processor, since its start.
/// Grows; two readings are subtracted. `None` where the kernel keeps no scheduler statistics.
pub fn thread_run_delay() -> Option<Duration> {
    parse_schedstat(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Nanoseconds on a processor, nanoseconds waiting for one, time slices.
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
        assert!(thread_run_delay().is_some_and(|after| after >= before));
    }
}
