//! Write concerns that name tags and modes, and flow control.

use super::{MAJORITY, Set, assert_ok, code_of_concern, insert, whole};
use crate::peer::{Peer, first_batch};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_testkit::patience::{PATIENCE, wait_for, wait_until};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const TAGS: [&str; 3] = [", tags: {dc: 'east'}", ", tags: {dc: 'west', disk: 'ssd'}", ", tags: {dc: 'east'}"];
const MODES: &str = "{getLastErrorModes: {both: {dc: 2}, three: {dc: 3}}}";

impl Set {
    fn configuration(&self, version: i64, rest: &[&str], settings: &str) -> String {
        let members = self.ports.iter().zip(rest).enumerate();
        let members: Vec<_> =
            members.map(|(id, (port, rest))| format!("{{_id: {id}, host: '127.0.0.1:{port}'{rest}}}")).collect();
        format!("{{_id: 'rs', version: {version}, members: [{}], settings: {settings}}}", members.join(", "))
    }

    /// Three members with these options, the first of which is primary.
    pub(super) fn of_three(rest: &[&str; 3], settings: &str) -> Self {
        let set = Self::start(3, &[]);
        assert_ok(&set.peer(0).run("admin", &format!("{{replSetInitiate: {}}}", set.configuration(1, rest, settings))));
        set.primary(&[0]);
        (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
        set
    }

    /// Changes the configuration of the first members, so many as `rest` has entries.
    pub(super) fn change(&self, rest: &[&str], settings: &str) -> DocumentBuf {
        let reply = self.ask(0, "replSetGetConfig").expect("an answer");
        let version = reply.as_ref().get("config").and_then(ValueRef::as_document).and_then(|it| it.get("version"));
        let version = version.and_then(number::as_i64_exact).expect("a version") + 1;
        self.peer(0).run("admin", &format!("{{replSetReconfig: {}}}", self.configuration(version, rest, settings)))
    }
}

fn unmet(peer: &mut Peer, id: i64, concern: &str) -> (i64, String) {
    let reply = insert(peer, id, concern);
    let error = reply.as_ref().get("writeConcernError").and_then(ValueRef::as_document);
    let message = error.and_then(|error| error.get("errmsg")).and_then(ValueRef::as_str).unwrap_or_default();
    assert_eq!(whole(&reply, "n"), 1, "{reply:?}");
    (code_of_concern(&reply), message.to_owned())
}

#[test]
fn write_concerns_name_tags_and_modes() {
    let mut set = Set::of_three(&TAGS, MODES);
    let mut peer = set.peer(0);
    for (id, concern) in
        ["{w: 'both'}", "{w: {dc: 2}}", "{w: 'both', j: true}", "{w: {dc: 1, disk: 1}}"].iter().enumerate()
    {
        assert_ok(&insert(&mut peer, id as i64, concern));
    }
    let unknown = "No write concern mode named 'none' found in replica set configuration";
    let few = "Not enough nodes match write concern mode";
    assert_eq!(unmet(&mut peer, 10, "{w: 'none'}"), (79, unknown.to_owned()));
    assert_eq!(unmet(&mut peer, 11, "{w: 'three'}"), (100, format!("{few} \"three\"")));
    assert_eq!(unmet(&mut peer, 12, "{w: {disk: 2}}"), (100, few.to_owned()));
    assert_eq!(unmet(&mut peer, 13, "{w: {colour: 1}}"), (100, few.to_owned()));
    let hello = set.ask(1, "hello").expect("an answer");
    let tags = hello.as_ref().get("tags").and_then(ValueRef::as_document).expect("tags");
    assert_eq!(tags.get("disk").and_then(ValueRef::as_str), Some("ssd"));
    // The only member in the west is down: two of three members have each write, and no two values of the tag.
    set.servers[1].kill();
    assert_ok(&insert(&mut peer, 20, MAJORITY));
    assert_eq!(unmet(&mut peer, 21, "{w: 'both', wtimeout: 50}").0, 64);
    assert_eq!(unmet(&mut peer, 22, "{w: {dc: 2}, wtimeout: 50}").0, 64);
    let built = "{createIndexes: 'rows', indexes: [{key: {a: 1}, name: 'a'}], writeConcern: {w: 'both', wtimeout: 50}}";
    assert_eq!(code_of_concern(&peer.run("test", built)), 64);
    let session =
        "lsid: {id: UUID('00112233-4455-6677-8899-aabbccddeeff')}, txnNumber: NumberLong(1), autocommit: false";
    assert_ok(
        &peer.run("test", &format!("{{insert: 'rows', documents: [{{_id: 23}}], {session}, startTransaction: true}}")),
    );
    let commit = format!("{{commitTransaction: 1, {session}, writeConcern: {{w: 'both', wtimeout: 50}}}}");
    assert_eq!(code_of_concern(&peer.run("admin", &commit)), 64);
    let default = "{setDefaultRWConcern: 1, defaultWriteConcern: {w: 'none'}, writeConcern: {w: 1}}";
    assert_eq!(whole(&peer.run("admin", default), "code"), 79);
    let default = "{setDefaultRWConcern: 1, defaultWriteConcern: {w: 'both', wtimeout: 50}, writeConcern: {w: 1}}";
    assert_ok(&peer.run("admin", default));
    let late = peer.run("test", "{insert: 'rows', documents: [{_id: 24}]}");
    assert_eq!((whole(&late, "n"), code_of_concern(&late)), (1, 64), "{late:?}");
    // The default's mode may not go.
    assert_eq!(whole(&set.change(&TAGS, "{}"), "code"), 103);
    assert_ok(&peer.run("admin", "{setDefaultRWConcern: 1, defaultWriteConcern: {w: 1}, writeConcern: {w: 1}}"));
    // A write that waits for a mode ends when the configuration has it no more, or when the members have the write.
    let address = set.address(0);
    let waiting = std::thread::spawn(move || unmet(&mut Peer::connect(address), 25, "{w: 'both'}"));
    wait_until("the write is there", || first_batch(&peer.run("test", "{find: 'rows', filter: {_id: 25}}")).len() == 1);
    assert_ok(&set.change(&TAGS, "{}"));
    assert_eq!(waiting.join().expect("no panic").0, 79);
    assert_ok(&set.change(&TAGS, MODES));
    let waiting = std::thread::spawn(move || insert(&mut Peer::connect(address), 26, "{w: 'both'}"));
    set.servers[1] = set.server(1);
    assert_ok(&waiting.join().expect("no panic"));
}

#[test]
fn modes_and_delays_that_make_no_sense_are_refused() {
    let set = Set::of_three(&TAGS, MODES);
    for (rest, settings, words) in [
        (TAGS, "{getLastErrorModes: {majority: {dc: 1}}}", "the mode 'majority', whose name is reserved"),
        (TAGS, "{getLastErrorModes: {m: {rack: 1}}}", "No replica set tag key rack in config"),
        (TAGS, "{getLastErrorModes: {m: {dc: 0}}}", "must be positive, but found 0"),
        (TAGS, "{getLastErrorModes: {m: 'dc'}}", "to be an Object, not string"),
        (TAGS, "{getLastErrorDefaults: {w: 'majority', wtimeout: 0}}", "must be {w: 1, wtimeout: 0}"),
        (["", "", ", secondaryDelaySecs: 5"], "{}", "priority must be 0 when secondaryDelaySecs is used"),
        (["", "", ", secondaryDelaySecs: -5, priority: 0"], "{}", "is out of range"),
    ] {
        let reply = set.change(&rest, settings);
        let message = reply.as_ref().get("errmsg").and_then(ValueRef::as_str).unwrap_or_default();
        assert!(whole(&reply, "code") == 93 && message.contains(words), "{settings}: {reply:?}");
    }
    assert_ok(&set.change(&TAGS, "{getLastErrorDefaults: {w: 1, wtimeout: 0}}"));
}

/// A field of `serverStatus.flowControl`.
fn flow(peer: &mut Peer, name: &str) -> f64 {
    let status = peer.run("admin", "{serverStatus: 1}");
    let flow = status.as_ref().get("flowControl").and_then(ValueRef::as_document).expect("flow control");
    match flow.get(name) {
        Some(ValueRef::Boolean(flag)) => f64::from(u8::from(flag)),
        value => value.and_then(number::as_f64).expect("a number"),
    }
}

/// Writes until `currentOp` lists a write that waits for flow control, and returns its entry.
fn waiting_write(address: SocketAddr) -> Option<DocumentBuf> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = Peer::connect(address);
            let mut ids = 2_000_000..;
            while !is_over.load(Ordering::Relaxed) {
                insert(&mut writer, ids.next().expect("without end"), "{w: 1}");
            }
        });
        let mut peer = Peer::connect(address);
        let until = Instant::now() + PATIENCE;
        let mut found = None;
        // A panic here would leave the writer without an end.
        while found.is_none() && Instant::now() < until {
            let reply = peer.run("admin", "{currentOp: 1}");
            let operations = reply.as_ref().get("inprog").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
            let mut operations = operations.iter().filter_map(ValueRef::as_document);
            let waits = |it: &DocumentRef<'_>| matches!(it.get("waitingForFlowControl"), Some(ValueRef::Boolean(true)));
            found = operations.find(waits).map(DocumentRef::to_owned);
        }
        is_over.store(true, Ordering::Relaxed);
        found
    })
}

#[test]
fn writers_are_slowed_down_while_the_commit_point_is_far_behind() {
    let set = Set::of_three(&["", "", ""], "{}");
    let mut peer = set.peer(0);
    assert_eq!(
        whole(&peer.run("admin", "{getParameter: 1, flowControlTargetLagSeconds: 1}"), "flowControlTargetLagSeconds"),
        10
    );
    assert_ok(&peer.run("admin", "{setParameter: 1, flowControlTargetLagSeconds: 1}"));
    assert_ok(&insert(&mut peer, 0, "{w: 3}"));
    assert_eq!((flow(&mut peer, "enabled"), flow(&mut peer, "isLagged")), (1.0, 0.0));
    // The secondaries answer, and take no records meanwhile.
    (1..3).for_each(|member| assert_ok(&set.peer(member).run("admin", "{fsync: 1, lock: true}")));
    let mut id = 0;
    let mut write = |peer: &mut Peer| {
        id += 1;
        assert_ok(&insert(peer, id, "{w: 1}"));
    };
    wait_for(|| {
        write(&mut peer);
        let waited = flow(&mut peer, "timeAcquiringMicros");
        // The longest wait of a write is a quarter of a second.
        let is_slow = waited > 0.0 && flow(&mut peer, "targetRateLimit") <= 4.0;
        if is_slow { Ok(()) } else { Err(set.tails(&format!("writes have waited {waited} us"))) }
    });
    assert_eq!((flow(&mut peer, "isLagged"), flow(&mut peer, "isLaggedCount")), (1.0, 1.0));
    let waiting = waiting_write(set.address(0)).expect("a write waits for flow control");
    let waiting = waiting.as_ref();
    assert_eq!(waiting.get("op").and_then(ValueRef::as_str), Some("insert"));
    let figures = waiting.get("flowControlStats").and_then(ValueRef::as_document).expect("figures");
    assert_eq!(figures.get("acquireWaitCount").and_then(number::as_i64_exact), Some(1));
    assert!(figures.get("acquireCount").is_none() && figures.get("timeAcquiringMicros").is_some(), "{figures:?}");
    // `maxTimeMS` ends the wait before the write.
    let late = peer.run("test", "{insert: 'rows', documents: [{_id: -1}], writeConcern: {w: 1}, maxTimeMS: 20}");
    assert_eq!(whole(&late, "code"), 50, "{late:?}");
    assert_ok(&peer.run("admin", "{setParameter: 1, enableFlowControl: false}"));
    let waited = flow(&mut peer, "timeAcquiringMicros");
    write(&mut peer);
    assert_eq!(flow(&mut peer, "timeAcquiringMicros"), waited);
    assert_ok(&peer.run("admin", "{setParameter: 1, enableFlowControl: true}"));
    (1..3).for_each(|member| assert_ok(&set.peer(member).run("admin", "{fsyncUnlock: 1}")));
    wait_until("writes wait no more", || {
        write(&mut peer);
        flow(&mut peer, "targetRateLimit") > 1e6 && flow(&mut peer, "isLagged") == 0.0
    });
    assert_ok(&insert(&mut peer, 1_000_000, "{w: 3}"));
}
