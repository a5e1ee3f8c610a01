//! Delayed members: they have the log of their set, and show the past.

use super::{MAJORITY, Set, assert_ok, insert, whole};
use crate::peer::{Peer, command, first_batch, message};
use bunko_bson::{ArrayRef, ValueRef, number};
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::shell;
use bunko_wire::MessageFlags;
use std::time::{Duration, Instant};

const HOUR: [&str; 3] = ["", "", ", priority: 0, hidden: true, secondaryDelaySecs: 3600"];
const NONE: [&str; 3] = ["", "", ", priority: 0, hidden: true"];

/// The ids of the rows that a member shows.
fn rows(set: &Set, member: usize) -> usize {
    let find = "{find: 'rows', $readPreference: {mode: 'secondaryPreferred'}}";
    first_batch(&set.peer(member).run("test", find)).len()
}

#[test]
fn a_delayed_member_has_the_log_and_shows_the_past() {
    const SECONDS: [&str; 3] = ["", "", ", priority: 0, hidden: true, secondaryDelaySecs: 4"];
    let mut set = Set::of_three(&HOUR, "{}");
    let mut peer = set.peer(0);
    assert_ok(&peer.run("test", "{createIndexes: 'rows', indexes: [{key: {a: 1}, name: 'a'}]}"));
    (0..10).for_each(|id| assert_ok(&insert(&mut peer, id, "{w: 3, j: true}")));
    wait_until("the other secondary has applied the rows", || rows(&set, 1) == 10);
    let hello = set.ask(2, "hello").expect("an answer");
    assert_eq!(whole(&hello, "secondaryDelaySecs"), 3600);
    assert!(set.ask(1, "hello").expect("an answer").as_ref().get("secondaryDelaySecs").is_none());
    assert_eq!(rows(&set, 2), 0);
    // It votes and counts for the majority by its log: with it alone, the primary goes on.
    set.servers[1].kill();
    assert_ok(&insert(&mut peer, 10, MAJORITY));
    set.servers[1] = set.server(1);
    // A restart applies nothing earlier.
    set.servers[2].kill();
    set.servers[2] = set.server(2);
    set.wait_for_state(2, "SECONDARY");
    assert_ok(&insert(&mut peer, 11, "{w: 3}"));
    assert_eq!(rows(&set, 2), 0);
    assert_ok(&set.change(&NONE, "{}"));
    wait_until("the member without a delay has applied all", || rows(&set, 2) == 12);
    assert_ok(&set.change(&SECONDS, "{}"));
    wait_until("the member is delayed", || {
        set.ask(2, "hello").is_some_and(|hello| whole(&hello, "secondaryDelaySecs") == 4)
    });
    let written = Instant::now();
    assert_ok(&insert(&mut peer, 12, "{w: 3}"));
    wait_until("the delayed member has applied the row", || rows(&set, 2) == 13);
    // Times of records are whole milliseconds.
    assert!(written.elapsed() >= Duration::from_millis(3990), "{:?}", written.elapsed());
    set.assert_equal(&[0, 1, 2], &["test"]);
}

/// The set may be changed without a delayed member because its past is wanted, so it must not be lost then.
#[test]
fn a_delayed_member_that_is_removed_keeps_its_delay() {
    let mut set = Set::of_three(&HOUR, "{}");
    let mut peer = set.peer(0);
    (0..5).for_each(|id| assert_ok(&insert(&mut peer, id, "{w: 3, j: true}")));
    wait_until("the other secondary has applied the rows", || rows(&set, 1) == 5);
    assert_ok(&set.change(&["", ""], "{}"));
    set.servers[2].logged("The set has removed this member");
    // Nothing shows that it applies nothing; a moment that is too short only makes the test weaker.
    std::thread::sleep(Duration::from_millis(500));
    set.servers[2].stop();
    set.servers[2] = set.server(2);
    assert_ok(&insert(&mut peer, 5, "{w: 2, j: true}"));
    assert_ok(&set.change(&HOUR, "{}"));
    set.wait_for_state(2, "SECONDARY");
    assert_ok(&insert(&mut peer, 6, "{w: 3}"));
    assert_eq!(rows(&set, 2), 0);
    assert_ok(&set.change(&NONE, "{}"));
    wait_until("the member without a delay has applied all", || rows(&set, 2) == 7);
    set.assert_equal(&[0, 1, 2], &["test"]);
}

/// The ids of the finds that a member works on.
fn finds(peer: &mut Peer) -> Vec<i64> {
    let reply = peer.run("admin", "{currentOp: 1}");
    let operations = reply.as_ref().get("inprog").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    let operations = operations.iter().filter_map(ValueRef::as_document);
    let of_find = operations
        .filter(|it| it.get("command").and_then(ValueRef::as_document).is_some_and(|it| it.get("find").is_some()));
    of_find.filter_map(|found| found.get("opid").and_then(number::as_i64_exact)).collect()
}

#[test]
fn reads_at_a_time_to_come_wait_without_threads() {
    const READERS: usize = 40;
    let set = Set::of_three(&HOUR, "{}");
    let mut peer = set.peer(0);
    let written = insert(&mut peer, 1, "{w: 3}");
    let time = shell::print(written.as_ref().get("operationTime").expect("a time"));
    let read = |rest: &str| {
        let concern = format!("{{level: 'local', afterClusterTime: {time}}}");
        format!("{{find: 'rows', readConcern: {concern}, $readPreference: {{mode: 'secondary'}}{rest}}}")
    };
    let mut delayed = set.peer(2);
    let late = delayed.run("test", &read(", maxTimeMS: 100"));
    assert_eq!(whole(&late, "code"), 50, "{late:?}");
    let threads = || std::fs::read_dir(format!("/proc/{}/task", set.servers[2].pid())).expect("a process").count();
    let before = threads();
    let address = set.address(2);
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let read = read("");
            std::thread::spawn(move || Peer::connect(address).run("test", &read))
        })
        .collect();
    let waiting = wait_for(|| match finds(&mut delayed) {
        finds if finds.len() == READERS => Ok(finds),
        finds => Err(format!("{} finds wait", finds.len())),
    });
    let more = threads().saturating_sub(before);
    assert!(more < READERS / 2, "{more} more threads for {READERS} reads");
    // A client that leaves, and `killOp`, end a wait.
    let mut leaving = Peer::connect(address);
    leaving.send(&message(1, MessageFlags::NONE, command("test", &read("")).as_ref()));
    wait_until("the last find waits", || finds(&mut delayed).len() == READERS + 1);
    drop(leaving);
    wait_until("the find of the client that left is over", || finds(&mut delayed).len() == READERS);
    assert_ok(&delayed.run("admin", &format!("{{killOp: 1, op: {}}}", waiting[0])));
    wait_until("the find that was killed is over", || finds(&mut delayed).len() == READERS - 1);
    assert_ok(&set.change(&NONE, "{}"));
    let replies = readers.into_iter().map(|reader| reader.join().expect("no panic"));
    let (killed, found): (Vec<_>, Vec<_>) = replies.partition(|reply| whole(reply, "ok") == 0);
    assert_eq!(killed.iter().map(|reply| whole(reply, "code")).collect::<Vec<_>>(), [11601]);
    assert!(found.iter().all(|reply| first_batch(reply) == ["{_id: NumberLong(1)}"]), "{found:?}");
}
