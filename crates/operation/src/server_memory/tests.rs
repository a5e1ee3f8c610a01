use super::*;
use bunko_host::Clock;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

const BUDGET: u64 = 1600;

fn poll(drawing: &mut Drawing) -> Option<Draw> {
    match Pin::new(drawing).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(draw) => Some(draw),
        Poll::Pending => None,
    }
}

#[test]
fn each_purpose_fills_its_part_and_no_more() {
    let memory = ServerMemory::new(BUDGET);
    let messages = [memory.draw(500, Purpose::Message), memory.draw(300, Purpose::Message)];
    assert!(
        messages.iter().all(Option::is_some) && memory.draw(1, Purpose::Message).is_none(),
        "their own part is full"
    );
    let replies = memory.draw(400, Purpose::Reply);
    assert!(replies.is_some() && memory.draw(1, Purpose::Reply).is_none());
    let work = memory.draw(300, Purpose::Work);
    assert!(work.is_some() && memory.draw(1, Purpose::Work).is_none(), "all but the last part is full");
    // Memory that is taken already is counted, whether there is room or not.
    let reply = memory.count(500, Purpose::Reply);
    assert_eq!((memory.held(), memory.drawn(Purpose::Reply)), (2000, 900));
    drop((messages, replies, work, reply));
    assert_eq!((memory.held(), memory.drawn(Purpose::Message)), (0, 0));
}

#[test]
fn a_draw_above_the_limit_takes_the_limit() {
    let memory = ServerMemory::new(BUDGET);
    assert_eq!(memory.draw(u64::MAX, Purpose::Message).map(|draw| draw.bytes()), Some(800));
}

#[test]
fn draws_are_served_in_their_order_and_none_overtakes() {
    let memory = ServerMemory::new(BUDGET);
    let all = [memory.draw(400, Purpose::Message), memory.draw(400, Purpose::Message)];
    let (mut large, mut small) =
        (memory.draw_in_turn(400, Purpose::Message), memory.draw_in_turn(10, Purpose::Message));
    assert!(poll(&mut large).is_none() && poll(&mut small).is_none());
    let [first, second] = all;
    let mut first = first.expect("there was room");
    first.set(360);
    // There is room for the small draw, but it is not its turn.
    assert!(poll(&mut small).is_none() && memory.draw(1, Purpose::Message).is_none() && !first.grow(1));
    // Work that has begun does not wait for messages.
    assert!(memory.draw(1, Purpose::Work).is_some());
    drop(second);
    let large = poll(&mut large).expect("its turn has come");
    let small = poll(&mut small).expect("there is room for both");
    assert_eq!((large.bytes(), small.bytes(), memory.waiting()), (400, 10, 0));
    assert!(first.grow(30) && first.bytes() == 390 && !first.grow(1));
}

#[test]
fn a_draw_that_gives_up_makes_way() {
    let memory = ServerMemory::new(BUDGET);
    let begun = memory.draw(400, Purpose::Message);
    let mut rest = memory.draw(380, Purpose::Message).expect("there is room");
    let (mut large, mut small) =
        (memory.draw_in_turn(300, Purpose::Message), memory.draw_in_turn(10, Purpose::Message));
    assert!(poll(&mut large).is_none() && poll(&mut small).is_none());
    drop(large);
    assert!(poll(&mut small).is_some());
    // A draw that was given its bytes and did not come for them gives them back.
    let mut given = memory.draw_in_turn(300, Purpose::Message);
    assert!(poll(&mut given).is_none());
    rest.set(0);
    drop(given);
    drop((begun, rest));
    assert_eq!((memory.held(), memory.waiting()), (0, 0));
}

#[test]
fn memory_given_back_serves_draws() {
    let memory = ServerMemory::new(BUDGET);
    assert_eq!(memory.tell(1200), 1200);
    assert!(memory.is_short());
    let mut waits = memory.draw_in_turn(100, Purpose::Message);
    assert!(poll(&mut waits).is_none());
    memory.tell(-200);
    assert!(poll(&mut waits).is_some());
    memory.tell(-1000);
    assert!(!memory.is_short());
}

#[test]
fn a_thread_waits_until_there_is_room_or_its_time_is_up() {
    let memory = ServerMemory::new(BUDGET);
    let all = memory.count(BUDGET, Purpose::Reply);
    let (mut waits, clock) = (memory.draw_in_turn(100, Purpose::Work), Clock::machine());
    assert!(waits.wait_until(clock.now() + Duration::from_millis(1), &clock).is_none());
    assert_eq!(memory.waiting_for(Purpose::Work), 1, "it keeps its place");
    let other = std::thread::spawn(move || drop(all));
    assert!(waits.wait_until(clock.now() + Duration::from_secs(20), &clock).is_some());
    other.join().expect("no panic");
}
