//! Limits of index builds: how many run at once, and the memory of each.
//!
//! A build reads a collection and writes keys as fast as it can. A few builds at once keep the processors and the disk
//! busy; more would take memory, their own and that of the engines, without ending earlier. So the others wait in order
//! of arrival. Their indexes exist already: writers maintain them, and a restart resumes their builds.

use bunko_errors::Result;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Default number of builds that run at once. Source: MongoDB manual, `maxNumActiveUserIndexBuilds`.
const ACTIVE_MAX: usize = 3;
/// Default memory limit of a build, in bytes. Source: MongoDB manual, `maxIndexBuildMemoryUsageMegabytes`.
const BYTES_MAX: u64 = 200 << 20;

/// The builds of one server.
#[derive(Debug)]
pub struct IndexBuilds {
    active_max: AtomicUsize,
    bytes_max: AtomicU64,
    queue: Mutex<Queue>,
    /// Notified when a build ends or gives up, or the limit changes.
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    active: usize,
    /// Tickets of waiting builds, the next one in front.
    waiting: VecDeque<u64>,
    next: u64,
}

impl Default for IndexBuilds {
    fn default() -> Self {
        Self {
            active_max: AtomicUsize::new(ACTIVE_MAX),
            bytes_max: AtomicU64::new(BYTES_MAX),
            queue: Mutex::default(),
            moved: Condvar::new(),
        }
    }
}

/// A running build.
#[derive(Debug)]
pub(crate) struct ActiveBuild<'b>(&'b IndexBuilds);

impl Drop for ActiveBuild<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().active -= 1;
        self.0.moved.notify_all();
    }
}

impl IndexBuilds {
    /// How many builds may run at once.
    pub fn active_max(&self) -> usize {
        self.active_max.load(Ordering::Relaxed)
    }

    /// Sets how many builds may run at once. Builds that are running continue.
    pub fn set_active_max(&self, active_max: usize) {
        self.active_max.store(active_max, Ordering::Relaxed);
        self.moved.notify_all();
    }

    /// Approximate memory limit of a build, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Sets the memory limit, for builds that have not begun to read.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// The numbers of running and of waiting builds.
    pub fn counts(&self) -> (usize, usize) {
        let queue = self.queue.lock();
        (queue.active, queue.waiting.len())
    }

    /// Waits for the caller's turn. `until` returns when to call it again, or the failure that ends the wait.
    /// # Errors
    /// As `until`.
    pub(crate) fn enter(&self, until: &dyn Fn() -> Result<Instant>) -> Result<ActiveBuild<'_>> {
        let mut queue = self.queue.lock();
        let ticket = queue.next;
        queue.next += 1;
        queue.waiting.push_back(ticket);
        loop {
            if queue.waiting.front() == Some(&ticket) && queue.active < self.active_max() {
                queue.waiting.pop_front();
                queue.active += 1;
                // There may be room for the next build, too.
                self.moved.notify_all();
                return Ok(ActiveBuild(self));
            }
            match until() {
                Ok(until) => drop(self.moved.wait_until(&mut queue, until)),
                Err(failure) => {
                    queue.waiting.retain(|waiting| *waiting != ticket);
                    self.moved.notify_all();
                    return Err(failure);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_errors::{ErrorCode, Failure};
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[expect(clippy::unnecessary_wraps, reason = "an operation may also say that it has to end")]
    fn soon() -> Result<Instant> {
        Ok(Instant::now() + Duration::from_millis(1))
    }

    #[test]
    fn as_many_go_on_as_may_in_their_order() {
        let builds = Arc::new(IndexBuilds::default());
        builds.set_active_max(2);
        let (first, second) = (builds.enter(&soon).expect("room"), builds.enter(&soon).expect("room"));
        let (entered, order) = channel();
        let mut threads = Vec::new();
        for number in 0..3 {
            let (own, entered) = (Arc::clone(&builds), entered.clone());
            threads.push(std::thread::spawn(move || {
                let active = own.enter(&soon).expect("its turn comes");
                entered.send(number).expect("heard");
                drop(active);
            }));
            while builds.counts().1 <= number {
                std::thread::yield_now();
            }
        }
        assert_eq!(builds.counts(), (2, 3));
        assert!(order.try_recv().is_err());
        drop((first, second));
        assert_eq!(order.iter().take(3).collect::<Vec<_>>().len(), 3);
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(builds.counts(), (0, 0));
    }

    #[test]
    fn a_build_that_gives_up_lets_later_ones_pass() {
        let builds = IndexBuilds::default();
        builds.set_active_max(1);
        let active = builds.enter(&soon).expect("room");
        let given_up = builds.enter(&|| Err(Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted")));
        assert_eq!(given_up.expect_err("it was interrupted").code(), ErrorCode::INTERRUPTED);
        assert_eq!(builds.counts(), (1, 0));
        drop(active);
        drop(builds.enter(&soon).expect("room again"));
    }
}
