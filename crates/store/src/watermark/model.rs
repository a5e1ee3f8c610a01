//! Writers in any order, with a concurrent reader.

use super::Watermark;
use crate::Lsn;
use crate::log::Moment;
use bunko_sync::atomic::{AtomicBool, Ordering};
use bunko_sync::{Mutex, explore, thread};
use std::sync::Arc;

const WRITERS: usize = 3;
const RECORD_BYTES: u64 = 10;

struct Model {
    watermark: Watermark,
    /// The log: position of its next record.
    next: Mutex<u64>,
    /// The engine: whether each record is applied.
    applied: [AtomicBool; WRITERS],
}

impl Model {
    fn write(&self) {
        let start = {
            let mut next = self.next.lock();
            let start = *next;
            *next += RECORD_BYTES;
            self.watermark.appended(Moment { lsn: Lsn(start), end: Lsn(*next), time_ms: 0 });
            start
        };
        self.applied[(start / RECORD_BYTES) as usize].store(true, Ordering::SeqCst);
        self.watermark.applied(Lsn(start));
        assert!(self.watermark.visible().0 >= start + RECORD_BYTES, "a client does not read what it wrote");
    }

    fn read(&self) {
        let visible = self.watermark.visible().0;
        for number in 0..visible / RECORD_BYTES {
            assert!(self.applied[number as usize].load(Ordering::SeqCst), "{number} is visible and not applied");
        }
    }
}

#[test]
fn visible_records_are_applied_and_no_thread_waits_for_ever() {
    explore(3000, || {
        let model = Arc::new(Model {
            watermark: Watermark::new(Lsn(0)),
            next: Mutex::new(0),
            applied: [const { AtomicBool::new(false) }; WRITERS],
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                let model = Arc::clone(&model);
                thread::spawn(move || model.write())
            })
            .collect();
        model.read();
        model.read();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        assert_eq!(model.watermark.visible(), Lsn(RECORD_BYTES * WRITERS as u64));
        model.read();
    });
}
