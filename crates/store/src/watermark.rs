//! Up to where readers may look: every record below the watermark is applied, without holes.

#[cfg(all(test, feature = "models"))]
mod model;

use crate::Lsn;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, hint};
use std::collections::VecDeque;

/// Follows records from their append (in order) over their application (in any order).
pub(crate) struct Watermark {
    visible: AtomicU64,
    pending: Mutex<VecDeque<Pending>>,
    advanced: Condvar,
}

struct Pending {
    start: u64,
    end: u64,
    is_applied: bool,
}

/// How often to look before sleeping: an application takes microseconds.
const SPINS: usize = 200;

impl Watermark {
    pub(crate) fn new(visible: Lsn) -> Self {
        Self {
            visible: AtomicU64::new(visible.0),
            pending: Mutex::new(VecDeque::with_capacity(64)),
            advanced: Condvar::new(),
        }
    }

    /// Everything below is applied.
    pub(crate) fn visible(&self) -> Lsn {
        Lsn(self.visible.load(Ordering::Acquire))
    }

    /// A record was appended at `start..end`. Called under the log's lock, so in order.
    pub(crate) fn appended(&self, start: Lsn, end: Lsn) {
        self.pending.lock().push_back(Pending { start: start.0, end: end.0, is_applied: false });
    }

    /// The record at `start` is applied; returns once readers see it, so that a client reads its own writes.
    pub(crate) fn applied(&self, start: Lsn) {
        {
            let mut pending = self.pending.lock();
            if let Some(record) = pending.iter_mut().find(|record| record.start == start.0) {
                record.is_applied = true;
            }
            let mut end = None;
            while pending.front().is_some_and(|record| record.is_applied) {
                end = pending.pop_front().map(|record| record.end);
            }
            if let Some(end) = end {
                self.visible.store(end, Ordering::Release);
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
        watermark.appended(Lsn(10), Lsn(20));
        watermark.appended(Lsn(20), Lsn(30));
        let later = {
            let watermark = Arc::clone(&watermark);
            std::thread::spawn(move || watermark.applied(Lsn(20)))
        };
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(watermark.visible(), Lsn(10));
        watermark.applied(Lsn(10));
        later.join().expect("no panic");
        assert_eq!(watermark.visible(), Lsn(30));
    }
}
