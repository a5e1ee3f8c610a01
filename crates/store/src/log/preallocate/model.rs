//! A writer that takes segments, concurrently with the thread that makes them and a thread that recycles one.

use super::Preallocator;
use crate::disk_room::DiskRoom;
use bunko_sync::{explore, thread};
use std::sync::Arc;

#[test]
fn segments_come_in_order_while_others_are_given_back() {
    explore(150, || {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (preallocator, maker) = Preallocator::start(directory.path(), 1, &DiskRoom::unlimited());
        let first = preallocator.take().expect("room");
        let giver = {
            let preallocator = Arc::clone(&preallocator);
            thread::spawn(move || preallocator.recycle(&first).expect("renamed"))
        };
        for number in 2..5 {
            let taken = preallocator.take().expect("a promise is broken: a segment without a fault");
            assert_eq!(taken.number, number);
        }
        giver.join().expect("no panic");
        preallocator.close();
        maker.join().expect("the thread ends");
    });
}

#[test]
fn an_attempt_from_before_there_was_room_is_told_to_one_at_most() {
    explore(150, || {
        let parent = tempfile::tempdir().expect("temporary directory");
        let directory = parent.path().join("log");
        let (preallocator, maker) = Preallocator::start(&directory, 1, &DiskRoom::unlimited());
        thread::yield_now();
        std::fs::create_dir(&directory).expect("a directory");
        // The thread may have failed already, or be about to fail.
        let first = preallocator.take().or_else(|_| preallocator.take()).expect("room");
        assert_eq!(first.number, 1);
        preallocator.close();
        maker.join().expect("the thread ends");
    });
}
