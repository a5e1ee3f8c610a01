//! Processors that are left for moments to those who wait for them.
//!
//! Where as many threads work for long as there are processors, whoever serves a short request, and the client that sends
//! it, has to share with them. The kernel shares fairly: a thread that had its part waits, in the middle of a request, while
//! one that works for long has its own, up to some milliseconds. Only a processor that nobody uses is had at once. So, while
//! requests come beside such work, each of the threads that do it leaves its own unused every now and then.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread rests; the kernel adds 0.05 ms before it wakes one.
const REST: Duration = Duration::from_micros(150);

/// Those who see that requests come beside threads that work for long and leave them no more than one processor.
static SEEN_BY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Since when this thread has worked without a rest, where it has been asked before.
    static RESTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// For as long as one of these lives, threads of this process that work for long rest every now and then.
pub struct Crowding(());

impl Crowding {
    /// Has them do so from now on.
    pub fn begin() -> Self {
        SEEN_BY.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Crowding {
    fn drop(&mut self) {
        SEEN_BY.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Called by a thread that works for long, between steps of some microseconds and with no lock held that short requests need:
/// rests once it has worked for a stint. It costs next to nothing where no requests come beside it.
#[inline]
pub fn rest_in_crowds(stint: Duration) {
    if SEEN_BY.load(Ordering::Relaxed) > 0 {
        rest_after(stint);
    }
}

#[cold]
fn rest_after(stint: Duration) {
    let rested = RESTED.get().unwrap_or_else(Instant::now);
    if rested.elapsed() < stint {
        RESTED.set(Some(rested));
    } else {
        std::thread::sleep(REST);
        RESTED.set(Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STINT: Duration = Duration::from_micros(100);

    /// How often a thread rests that works for 20 ms.
    fn rests() -> usize {
        let began = Instant::now();
        let mut count = 0;
        while began.elapsed() < Duration::from_millis(20) {
            let before = RESTED.get();
            rest_in_crowds(STINT);
            count += usize::from(before.is_some() && RESTED.get() != before);
        }
        count
    }

    #[test]
    fn threads_rest_while_somebody_sees_a_crowd() {
        assert_eq!(rests(), 0);
        let crowding = (Crowding::begin(), Crowding::begin());
        let crowded = rests();
        assert!((1..=100).contains(&crowded), "{crowded} rests, each after 0.1 ms of work");
        drop(crowding.0);
        assert!(rests() > 0, "another one sees it still");
        drop(crowding.1);
        assert_eq!(rests(), 0);
    }
}
