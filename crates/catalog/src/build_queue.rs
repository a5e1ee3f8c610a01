//! How many index builds go on at once, and what each may hold in memory.
//!
//! A build reads a collection and writes as many keys as that has, as fast as it can. A few at once keep the processors and
//! the disk busy; more take memory, of their own and in the engines, and end no earlier. So the others wait in the order in
//! which they came. Their indexes are begun already: writers maintain them, and a start goes on with them.

use bunko_errors::Result;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Builds that go on at once where nothing else is said. Source: MongoDB manual, `maxNumActiveUserIndexBuilds`.
const ACTIVE_MAX: usize = 3;
/// Bytes that a build may hold in memory where nothing else is set. Source: MongoDB manual,
/// `maxIndexBuildMemoryUsageMegabytes`.
const BYTES_MAX: u64 = 200 << 20;

/// The builds of one server.
#[derive(Debug)]
pub struct IndexBuilds {
    active_max: AtomicUsize,
    bytes_max: AtomicU64,
    queue: Mutex<Queue>,
    /// Notified whenever a build ends or gives up, or the limit changes.
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    active: usize,
    /// Tickets of the builds that wait, the next one in front.
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

/// A build that goes on.
#[derive(Debug)]
pub(crate) struct ActiveBuild<'b>(&'b IndexBuilds);

impl Drop for ActiveBuild<'_> {
    fn drop(&mut self) {
        self.0.queue.lock().active -= 1;
        self.0.moved.notify_all();
    }
}

impl IndexBuilds {
    /// How many builds may go on at once.
    pub fn active_max(&self) -> usize {
        self.active_max.load(Ordering::Relaxed)
    }

    /// Sets it. Builds that go on already do so.
    pub fn set_active_max(&self, active_max: usize) {
        self.active_max.store(active_max, Ordering::Relaxed);
        self.moved.notify_all();
    }

    /// Bytes that a build may hold in memory, about.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Sets it, for builds that have not begun to read.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// How many builds go on, and how many wait.
    pub fn counts(&self) -> (usize, usize) {
        let queue = self.queue.lock();
        (queue.active, queue.waiting.len())
    }

    /// Waits for this build's turn. `until` says how long to wait before it is asked again.
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
                // There may be room for the next one too.
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
    fn who_gives_up_lets_those_behind_it_pass() {
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
