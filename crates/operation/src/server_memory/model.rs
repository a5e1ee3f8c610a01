//! Draws that wait, draws that give up and room that comes, in any order of the threads.

use super::{Purpose, ServerMemory};
use bunko_sync::atomic::{AtomicU64, Ordering};
use bunko_sync::{block_on, thread};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// More than half of the memory that messages may hold, so that only one message at a time has it.
const BYTES: u64 = 500;
const BUDGET: u64 = 1600;

fn explore(model: impl Fn() + Send + Sync + 'static) {
    bunko_sync::explore(3000, model);
}

#[test]
fn all_are_served_and_the_budget_holds() {
    explore(|| {
        let memory = ServerMemory::new(BUDGET);
        let drawn = Arc::new(AtomicU64::new(0));
        let draw = |bytes| {
            let (memory, drawn) = (Arc::clone(&memory), Arc::clone(&drawn));
            thread::spawn(move || {
                let draw = block_on(memory.draw_in_turn(bytes, Purpose::Message));
                let all = drawn.fetch_add(draw.bytes(), Ordering::SeqCst) + draw.bytes();
                assert!(all <= memory.own_limit(Purpose::Message), "{all} bytes are drawn");
                drawn.fetch_sub(draw.bytes(), Ordering::SeqCst);
            })
        };
        let threads = [draw(BYTES), draw(BYTES), draw(BYTES / 2), draw(BYTES)];
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!((memory.held(), memory.waiting()), (0, 0));
    });
}

#[test]
fn a_draw_that_gives_up_keeps_no_other_waiting() {
    explore(|| {
        let memory = ServerMemory::new(BUDGET);
        let begun = memory.draw(BYTES, Purpose::Message);
        let gives_up = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut drawing = memory.draw_in_turn(BYTES, Purpose::Message);
                // Asked once, and dropped whatever the answer is.
                block_on(poll_fn(|context| Poll::Ready(drop(Future::poll(pin!(&mut drawing), context)))));
            })
        };
        let waits = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || drop(block_on(memory.draw_in_turn(BYTES / 2, Purpose::Message))))
        };
        drop(begun);
        gives_up.join().expect("no panic");
        waits.join().expect("no panic");
        assert_eq!((memory.held(), memory.waiting()), (0, 0));
    });
}

#[test]
fn memory_given_back_wakes_waiting_operations() {
    explore(|| {
        let memory = ServerMemory::new(BUDGET);
        memory.tell(BUDGET as i64);
        let waits = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || drop(block_on(memory.draw_in_turn(BYTES, Purpose::Message))))
        };
        memory.tell(-(BUDGET as i64));
        waits.join().expect("no panic");
        assert_eq!((memory.held(), memory.waiting()), (0, 0));
    });
}
