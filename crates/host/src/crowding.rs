//! Leaves processors idle for moments, so that short requests find one.
//!
//! With as many busy threads as processors, the thread that serves a short request, and the client that sends it, must
//! share a processor with them. The kernel shares fairly: a thread that used up its slice waits, even in the middle of
//! a request, until a busy thread has used its own, up to some milliseconds. Only an idle processor runs a thread at
//! once. So each busy thread leaves its processor idle now and then while other requests arrive.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Length of a rest; the kernel adds 0.05 ms before it wakes the thread.
const REST: Duration = Duration::from_micros(150);

/// Number of live [`Crowding`] values.
static SEEN_BY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Start of this thread's current stint of work; `None` before its first call of [`rest_in_crowds`].
    static RESTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// While a value of this type lives, busy threads of this process rest every now and then.
pub struct Crowding(());

impl Crowding {
    /// Makes busy threads rest from now on.
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

/// Rests if the calling thread has worked for a `stint` since its last rest. Busy threads call this between steps of
/// some microseconds, while they hold no lock that short requests need. It costs almost nothing while no [`Crowding`]
/// lives.
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

    /// How often a thread rests while it works for 20 ms.
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
    fn threads_rest_while_any_thread_sees_a_crowd() {
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
