//! The watermark: all records below it have been applied, without gaps, so readers may see them.

#[cfg(all(test, feature = "models"))]
mod model;

use crate::Lsn;
use crate::log::Moment;
use bunko_bson::Timestamp;
use bunko_sync::atomic::{AtomicU64, Ordering};
use bunko_sync::{Condvar, Mutex, hint};
use std::collections::VecDeque;

/// Tracks records from their append (in order) to their application (in any order).
pub(crate) struct Watermark {
    visible: AtomicU64,
    /// Time of the newest record below `visible`, as [`packed`]. A reader that loads `visible` first never sees an
    /// older time.
    newest: AtomicU64,
    pending: Mutex<VecDeque<Pending>>,
    advanced: Condvar,
}

struct Pending {
    moment: Moment,
    is_applied: bool,
}

/// A time as a number with the same order.
fn packed(at: Timestamp) -> u64 {
    u64::from(at.seconds) << 32 | u64::from(at.increment)
}

/// Number of checks before sleeping: an application takes microseconds.
const SPINS: usize = 200;

impl Watermark {
    pub(crate) fn new(visible: Lsn) -> Self {
        Self {
            visible: AtomicU64::new(visible.0),
            newest: AtomicU64::new(0),
            pending: Mutex::new(VecDeque::with_capacity(64)),
            advanced: Condvar::new(),
        }
    }

    /// All records below it have been applied.
    pub(crate) fn visible(&self) -> Lsn {
        Lsn(self.visible.load(Ordering::Acquire))
    }

    /// Time of the newest applied record; 0 before there is one.
    pub(crate) fn newest(&self) -> Timestamp {
        let newest = self.newest.load(Ordering::Acquire);
        Timestamp { seconds: (newest >> 32) as u32, increment: newest as u32 }
    }

    /// The watermark, and the time of the newest record below it, both of one moment.
    pub(crate) fn now(&self) -> (Lsn, Timestamp) {
        // Both values change only under this lock.
        let _pending = self.pending.lock();
        (self.visible(), self.newest())
    }

    /// Notes that a record was appended. Called under the log's lock, so in order.
    pub(crate) fn appended(&self, moment: Moment) {
        self.pending.lock().push_back(Pending { moment, is_applied: false });
    }

    /// Notes that the record at `start` has been applied. Returns once readers see it, so that a client reads its own
    /// writes.
    pub(crate) fn applied(&self, start: Lsn) {
        {
            let mut pending = self.pending.lock();
            if let Some(record) = pending.iter_mut().find(|record| record.moment.lsn == start) {
                record.is_applied = true;
            }
            let mut last = None;
            while pending.front().is_some_and(|record| record.is_applied) {
                last = pending.pop_front();
            }
            if let Some(Pending { moment, .. }) = last {
                self.newest.store(packed(moment.timestamp(0)), Ordering::Release);
                self.visible.store(moment.end.0, Ordering::Release);
                self.advanced.notify_all();
            }
        }
        self.wait_past(start);
    }

    fn wait_past(&self, lsn: Lsn) {
        for _ in 0..SPINS {
            if self.visible() > lsn {
                return;
            }
            hint::spin_loop();
        }
        let mut pending = self.pending.lock();
        while self.visible() <= lsn {
            self.advanced.wait(&mut pending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_later_record_waits_for_an_earlier_one() {
        let watermark = Arc::new(Watermark::new(Lsn(10)));
        watermark.appended(Moment { lsn: Lsn(10), end: Lsn(20), time_ms: 3000 });
        watermark.appended(Moment { lsn: Lsn(20), end: Lsn(30), time_ms: 4999 });
        let later = {
            let watermark = Arc::clone(&watermark);
            std::thread::spawn(move || watermark.applied(Lsn(20)))
        };
        // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(watermark.visible(), Lsn(10));
        watermark.applied(Lsn(10));
        later.join().expect("no panic");
        assert_eq!(watermark.visible(), Lsn(30));
        assert_eq!(watermark.newest(), Timestamp { seconds: 4, increment: 20 });
    }
}
