//! Changes of the members of a set that runs: each with its code, and beside writes and kills.

use super::{MAJORITY, Set, THREE, assert_ok, insert, whole};
use crate::peer::Peer;
use bunko_bson::{ArrayRef, DocumentBuf, ValueRef, number};
use bunko_client::{ClientError, Connection};
use bunko_testkit::patience::{wait_for, wait_until};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

impl Set {
    /// A member of a configuration, by the server's number; `rest` may say more than its host.
    fn member(&self, id: u32, server: usize, rest: &str) -> String {
        format!("{{_id: {id}, host: '127.0.0.1:{}'{rest}}}", self.ports[server])
    }

    /// Three members, whose ids are the numbers of their servers.
    fn three(&self, rest: [&str; 3]) -> Vec<String> {
        rest.iter().enumerate().map(|(server, rest)| self.member(server as u32, server, rest)).collect()
    }

    fn version(&self, server: usize) -> i64 {
        let reply = self.ask(server, "replSetGetConfig").expect("an answer");
        whole(
            &reply.as_ref().get("config").and_then(ValueRef::as_document).expect("a configuration").to_owned(),
            "version",
        )
    }

    /// Sends a configuration with these members, and with a version above the present one.
    fn reconfigure(&self, server: usize, members: &[String], rest: &str) -> DocumentBuf {
        let version = self.version(server) + 1;
        let next = format!("{{_id: 'rs', version: {version}, members: [{}]}}", members.join(", "));
        self.peer(server).run("admin", &format!("{{replSetReconfig: {next}{rest}}}"))
    }

    /// Waits until all members of the configuration have the votes that they are to have.
    fn wait_for_votes(&self, primary: usize, votes: i64) {
        wait_until("all members vote", || {
            self.ask(primary, "replSetGetStatus").is_some_and(|status| whole(&status, "votingMembersCount") == votes)
        });
    }

    fn started() -> Self {
        let set = Self::start(5, &[]);
        assert_ok(&set.initiate(&THREE));
        set.primary(&[0]);
        (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
        assert_ok(&insert(&mut set.peer(0), 0, MAJORITY));
        set
    }
}

/// Whether a member knows that it is removed. It may be about to start again.
fn is_removed(set: &Set, member: usize) -> bool {
    let uri = format!("mongodb://127.0.0.1:{}/?directConnection=true", set.ports[member]);
    let Ok(mut connection) = Connection::dial(&uri.parse().expect("a URI")) else { return false };
    let status = connection.run_command("admin", DocumentBuf::new().with("replSetGetStatus", 1).as_ref());
    matches!(status, Err(ClientError::Command(error)) if error.code == 93)
}

fn flag(reply: &DocumentBuf, name: &str) -> bool {
    matches!(reply.as_ref().get(name), Some(ValueRef::Boolean(true)))
}

fn texts(reply: &DocumentBuf, name: &str) -> usize {
    reply.as_ref().get(name).and_then(ValueRef::as_array).into_iter().flat_map(ArrayRef::iter).count()
}

/// Each change that the primary refuses, and its code. Nothing is changed by them.
#[test]
fn each_refused_change_has_its_code() {
    let set = Set::started();
    assert_ok(&set.peer(3).run("test", "{insert: 'own', documents: [{_id: 1}]}"));
    let with = |more: Vec<String>| [set.three(["", "", ""]), more].concat();
    let only =
        |members: &[usize]| members.iter().map(|member| set.member(*member as u32, *member, "")).collect::<Vec<_>>();
    let table: Vec<(&str, Vec<String>, i64)> = vec![
        ("two voters come", with(vec![set.member(3, 3, ""), set.member(4, 4, "")]), 103),
        ("two voters go", only(&[0]), 103),
        ("a voter comes and another goes", [only(&[0, 1]), vec![set.member(4, 4, "")]].concat(), 103),
        ("another id for a host", [only(&[0, 1]), vec![set.member(7, 2, "")]].concat(), 103),
        ("another host for an id", [only(&[0, 1]), vec![set.member(2, 4, "")]].concat(), 115),
        ("a data member becomes an arbiter", set.three(["", "", ", arbiterOnly: true"]), 103),
        ("an arbiter changes the implied default", with(vec![set.member(4, 4, ", arbiterOnly: true")]), 103),
        ("a server with data", with(vec![set.member(3, 3, "")]), 103),
        ("the primary leaves", only(&[1, 2]), 74),
        ("the primary cannot stay primary", set.three([", priority: 0", "", ""]), 104),
        ("hidden with a priority", set.three(["", "", ", hidden: true"]), 93),
        ("no vote with a priority", set.three(["", "", ", votes: 0"]), 93),
        ("two votes", set.three(["", "", ", votes: 2"]), 93),
        ("one id twice", with(vec![set.member(2, 4, "")]), 93),
        ("one host twice", with(vec![set.member(3, 2, "")]), 93),
        ("without an id", vec![format!("{{host: '127.0.0.1:{}'}}", set.ports[0])], 40414),
        ("an unknown field", set.three(["", "", ", newlyAdded: true"]), 93),
        ("other horizons", set.three(["", "", ", horizons: {a: 'b:1'}"]), 93),
        ("no member", vec![], 93),
    ];
    let version = set.version(0);
    for (name, members, code) in table {
        let reply = set.reconfigure(0, &members, "");
        assert_eq!(whole(&reply, "code"), code, "{name}: {reply:?}");
        assert_eq!(set.version(0), version, "{name}");
    }
    let three = set.three(["", "", ""]).join(", ");
    for (name, configuration, code) in [
        ("an old version", format!("{{_id: 'rs', version: {version}, members: [{three}]}}"), 103),
        ("another name", format!("{{_id: 'other', version: 9, members: [{three}]}}"), 103),
        ("a version of 33 bits", format!("{{_id: 'rs', version: NumberLong('4294967296'), members: [{three}]}}"), 2),
        ("an unknown field", format!("{{_id: 'rs', version: 9, colour: 1, members: [{three}]}}"), 93),
        ("other settings", format!("{{_id: 'rs', version: 9, members: [{three}], settings: {{colour: 1}}}}"), 93),
    ] {
        let reply = set.peer(0).run("admin", &format!("{{replSetReconfig: {configuration}}}"));
        assert_eq!(whole(&reply, "code"), code, "{name}: {reply:?}");
    }
    let secondary = set.reconfigure(1, &set.three(["", "", ""]), "");
    assert_eq!(whole(&secondary, "code"), 10107, "{secondary:?}");
    assert_eq!(set.version(0), version);
}

#[test]
fn a_change_needs_a_majority_of_the_new_voters() {
    let set = Set::start(1, &[]);
    set.primary(&[0]);
    // Nothing listens there.
    let port = bunko_testkit::process::fixed_port();
    let members = [set.member(0, 0, ""), format!("{{_id: 1, host: '127.0.0.1:{port}'}}")];
    let refused = set.reconfigure(0, &members, "");
    assert_eq!(whole(&refused, "code"), 74, "{refused:?}");
    let message = refused.as_ref().get("errmsg").and_then(ValueRef::as_str).expect("a message");
    assert!(
        message.contains("required 2 but only the following 1") && message.contains(&port.to_string()),
        "{message}"
    );
    assert_ok(&set.peer(0).run("test", "{insert: 'own', documents: [{_id: 1}]}"));
}

#[test]
fn each_accepted_change_shows_in_hello_and_in_the_status() {
    let set = Set::started();
    let hidden = ", priority: 0, hidden: true, tags: {dc: 'b'}";
    assert_ok(&set.reconfigure(0, &set.three(["", "", hidden]), ""));
    wait_until("the hidden member knows it", || set.ask(2, "hello").is_some_and(|hello| flag(&hello, "hidden")));
    let own = set.ask(2, "hello").expect("an answer");
    assert!(flag(&own, "passive") && flag(&own, "secondary"), "{own:?}");
    assert!(own.as_ref().get("tags").and_then(ValueRef::as_document).is_some_and(|tags| tags.get("dc").is_some()));
    let primary = set.ask(0, "hello").expect("an answer");
    assert_eq!((texts(&primary, "hosts"), texts(&primary, "passives")), (2, 0), "{primary:?}");
    // A member without a vote has data, and counts for no majority.
    assert_ok(&set.reconfigure(0, &set.three(["", "", ", priority: 0, votes: 0"]), ""));
    set.wait_for_votes(0, 2);
    let primary = set.ask(0, "hello").expect("an answer");
    assert_eq!((texts(&primary, "hosts"), texts(&primary, "passives")), (2, 1), "{primary:?}");
    assert_ok(&insert(&mut set.peer(0), 1, "{w: 3}"));
    // A vote, and an arbiter beside an explicit default.
    assert_ok(&set.reconfigure(0, &set.three(["", "", ""]), ""));
    set.wait_for_votes(0, 3);
    let default = "{setDefaultRWConcern: 1, defaultWriteConcern: {w: 'majority'}}";
    assert_ok(&set.peer(0).run("admin", default));
    let arbiter = set.member(3, 3, ", arbiterOnly: true");
    assert_ok(&set.reconfigure(0, &[set.three(["", "", ""]), vec![arbiter]].concat(), ""));
    set.wait_for_state(3, "ARBITER");
    let primary = set.ask(0, "hello").expect("an answer");
    assert_eq!((texts(&primary, "hosts"), texts(&primary, "arbiters")), (3, 1), "{primary:?}");
    // A higher priority takes over.
    assert_ok(&set.reconfigure(0, &set.three(["", ", priority: 5", ""]), ""));
    assert_eq!(set.primary(&[1]), 1);
    assert_ok(&insert(&mut set.peer(1), 2, MAJORITY));
}

#[test]
fn a_removed_member_keeps_its_data_and_comes_back_under_another_id() {
    let mut set = Set::started();
    let two = [set.member(0, 0, ""), set.member(2, 2, "")];
    assert_ok(&set.reconfigure(0, &two, ""));
    let is_removed = |set: &Set| is_removed(set, 1);
    wait_until("the member knows that it is removed", || is_removed(&set));
    let hello = set.ask(1, "hello").expect("an answer");
    assert!(flag(&hello, "isreplicaset") && hello.as_ref().get("setName").is_none(), "{hello:?}");
    let refused = set.peer(1).run("test", "{find: 'rows', $readPreference: {mode: 'nearest'}}");
    assert_eq!(whole(&refused, "code"), 13436, "{refused:?}");
    assert_ok(&insert(&mut set.peer(0), 1, "{w: 2}"));
    // Also after a restart.
    set.servers[1].kill();
    set.servers[1] = set.server(1);
    wait_until("the member still knows that it is removed", || is_removed(&set));
    assert_ok(&set.reconfigure(0, &[two.to_vec(), vec![set.member(7, 1, "")]].concat(), ""));
    set.wait_for_state(1, "SECONDARY");
    set.wait_for_votes(0, 3);
    assert_ok(&insert(&mut set.peer(0), 2, "{w: 3}"));
    set.assert_equal(&[0, 1, 2], &["test"]);
    // It had the data: nothing was copied.
    assert!(!set.servers[1].output_tail().contains("initial sync"), "{}", set.servers[1].output_tail());
    // Another server under the id of a member that was removed.
    assert_ok(&set.reconfigure(0, &two, ""));
    assert_ok(&set.reconfigure(0, &[two.to_vec(), vec![set.member(7, 3, "")]].concat(), ""));
    set.wait_for_state(3, "SECONDARY");
    set.wait_for_votes(0, 3);
    wait_until("the former member is replaced", || is_removed(&set));
    assert_ok(&insert(&mut set.peer(0), 3, "{w: 3}"));
    set.assert_equal(&[0, 2, 3], &["test"]);
}

#[test]
fn a_set_of_one_grows_and_shrinks() {
    let set = Set::start(2, &[]);
    set.primary(&[0]);
    assert_ok(&insert(&mut set.peer(0), 1, "{w: 1}"));
    for round in 0..2 {
        assert_ok(&set.reconfigure(0, &[set.member(0, 0, ""), set.member(1, 1, "")], ""));
        set.wait_for_state(1, "SECONDARY");
        set.wait_for_votes(0, 2);
        assert_ok(&insert(&mut set.peer(0), 10 + round, "{w: 2}"));
        set.assert_equal(&[0, 1], &["test"]);
        assert_ok(&set.reconfigure(0, &[set.member(0, 0, "")], ""));
        assert_ok(&insert(&mut set.peer(0), 20 + round, MAJORITY));
    }
    let settings = set.ask(0, "replSetGetConfig").expect("an answer");
    let settings =
        settings.as_ref().get("config").and_then(ValueRef::as_document).and_then(|config| config.get("settings"));
    let timeout = settings.and_then(ValueRef::as_document).and_then(|settings| settings.get("electionTimeoutMillis"));
    assert_eq!(timeout.and_then(number::as_i64_exact), Some(1000));
}

#[test]
fn a_forced_change_frees_a_set_that_has_lost_its_majority() {
    let mut set = Set::started();
    assert_ok(&insert(&mut set.peer(0), 1, "{w: 3}"));
    set.servers[0].kill();
    set.servers[2].kill();
    let alone = [set.member(1, 1, "")];
    wait_until("the primary is gone", || whole(&set.reconfigure(1, &alone, ""), "code") == 10107);
    assert_ok(&set.reconfigure(1, &alone, ", force: true"));
    assert_eq!(set.primary(&[1]), 1);
    assert!(set.version(1) > 10_000);
    set.servers[1].logged("is forced");
    assert_ok(&insert(&mut set.peer(1), 2, MAJORITY));
    // A former member hears of the change from the others.
    set.servers[0] = set.server(0);
    wait_until("the former primary is removed", || is_removed(&set, 0));
}

/// Writes rows with the concern `majority`, one after the other, until it is told to stop. Returns the acknowledged ones.
fn write_rows(addresses: &[SocketAddr], lane: i64, is_over: &AtomicBool) -> Vec<i64> {
    let (mut acknowledged, mut id, mut at, mut connection) = (Vec::new(), lane * 1_000_000, 0, None);
    while !is_over.load(Ordering::Acquire) {
        let uri = format!("mongodb://{}/?directConnection=true", addresses[at]);
        if connection.is_none() {
            connection = Connection::dial(&uri.parse().expect("a URI")).ok();
        }
        id += 1;
        let concern = DocumentBuf::new().with("w", "majority").with("wtimeout", 2000);
        let documents: bunko_bson::ArrayBuf = [DocumentBuf::new().with("_id", id)].iter().collect();
        let command =
            DocumentBuf::new().with("insert", "rows").with("documents", &documents).with("writeConcern", &concern);
        let reply = connection.as_mut().map(|connection| connection.run_command("test", command.as_ref()));
        match reply {
            Some(Ok(reply)) if reply.as_ref().get("writeConcernError").is_none() && whole(&reply, "n") == 1 => {
                acknowledged.push(id);
            }
            Some(Ok(_)) => {}
            _ => {
                (connection, at) = (None, (at + 1) % addresses.len());
                thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
    acknowledged
}

/// Proposes a configuration until the primary takes it.
fn change(set: &Set, members: &[String]) {
    let all: Vec<usize> = (0..3).collect();
    wait_for(|| {
        let reply = set.reconfigure(set.primary(&all), members, "");
        if whole(&reply, "ok") == 1 { Ok(()) } else { Err(set.tails(&format!("{reply:?}"))) }
    });
}

#[test]
fn changes_beside_writers_and_kills_lose_no_acknowledged_write() {
    let mut set = Set::started();
    assert_ok(&set.peer(0).run("admin", "{setDefaultRWConcern: 1, defaultWriteConcern: {w: 'majority'}}"));
    let addresses: Vec<_> = (0..3).map(|member| set.address(member)).collect();
    let (is_over, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let writers: Vec<_> = (0..2)
        .map(|lane| {
            let (addresses, is_over, acknowledged) =
                (addresses.clone(), Arc::clone(&is_over), Arc::clone(&acknowledged));
            thread::spawn(move || {
                let rows = write_rows(&addresses, lane + 1, &is_over);
                acknowledged.lock().expect("no panic").extend(rows);
            })
        })
        .collect();
    let three = set.three(["", "", ""]);
    let four = [three.clone(), vec![set.member(3, 3, "")]].concat();
    change(&set, &four);
    // A kill while the new member gets its data and its vote.
    let primary = set.primary(&[0, 1, 2]);
    set.servers[primary].kill();
    set.servers[primary] = set.server(primary);
    set.wait_for_state(3, "SECONDARY");
    let arbiter = set.member(4, 4, ", arbiterOnly: true");
    change(&set, &[four, vec![arbiter.clone()]].concat());
    set.servers[3].kill();
    set.servers[3] = set.server(3);
    set.wait_for_state(4, "ARBITER");
    // A follower of the primary leaves, whichever it is now.
    let primary = set.primary(&[0, 1, 2]);
    let leaves = (primary + 1) % 3;
    let rest: Vec<_> =
        (0..4).filter(|member| *member != leaves).map(|member| set.member(member as u32, member, "")).collect();
    change(&set, &[rest, vec![arbiter]].concat());
    let primary = set.primary(&[0, 1, 2]);
    set.servers[primary].kill();
    set.servers[primary] = set.server(primary);
    let stay: Vec<_> = (0..4).filter(|member| *member != leaves).collect();
    let primary = set.primary(&stay);
    thread::sleep(std::time::Duration::from_millis(500));
    is_over.store(true, Ordering::Release);
    for writer in writers {
        writer.join().expect("no panic");
    }
    stay.iter().filter(|member| **member != primary).for_each(|member| set.wait_for_state(*member, "SECONDARY"));
    wait_for(|| {
        let reply = insert(&mut set.peer(set.primary(&stay)), 1, "{w: 3, wtimeout: 5000}");
        let is_there = whole(&reply, "n") == 1 || reply.as_ref().get("writeErrors").is_some();
        if is_there && reply.as_ref().get("writeConcernError").is_none() { Ok(()) } else { Err(format!("{reply:?}")) }
    });
    set.assert_equal(&stay, &["test"]);
    let acknowledged = acknowledged.lock().expect("no panic").clone();
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    let mut peer = set.peer(set.primary(&stay));
    for rows in acknowledged.chunks(1000) {
        let ids: Vec<_> = rows.iter().map(i64::to_string).collect();
        let count = peer.run("test", &format!("{{count: 'rows', query: {{_id: {{$in: [{}]}}}}}}", ids.join(", ")));
        assert_eq!(whole(&count, "n"), rows.len() as i64, "acknowledged writes are lost");
    }
}

#[test]
fn a_change_that_no_majority_stores_before_the_primary_steps_down_is_no_success() {
    let set = Set::start(3, &[]);
    let member = |id: usize| format!("{{_id: {id}, host: '127.0.0.1:{}'}}", set.ports[id]);
    let members = [0, 1, 2].map(member).join(", ");
    // Long enough for the change to be asked for before the primary notices that it is alone.
    let settings = "settings: {electionTimeoutMillis: 8000}";
    let configuration = format!("{{_id: 'rs', members: [{members}], {settings}}}");
    assert_ok(&set.peer(0).run("admin", &format!("{{replSetInitiate: {configuration}}}")));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let mut peer = set.peer(0);
    assert_ok(&insert(&mut peer, 1, "{w: 3}"));
    let change = format!(
        "{{replSetReconfig: {{_id: 'rs', version: 1000, members: [{}, {}, {}], {settings}}}}}",
        member(0),
        member(1),
        member(2).replace('}', ", priority: 0.5}")
    );
    let stopped = [1, 2].map(|member| {
        let pid = rustix::process::Pid::from_raw(set.servers[member].pid() as i32).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
        pid
    });
    let outcome = peer.run("admin", &change);
    for pid in stopped {
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it goes on");
    }
    assert_eq!(whole(&outcome, "code"), 189, "{outcome:?}");
    let code_name = outcome.as_ref().get("codeName").and_then(ValueRef::as_str);
    assert_eq!(code_name, Some("PrimarySteppedDown"), "{outcome:?}");
    // The set goes on, and the change may be made again.
    set.primary(&[0, 1, 2]);
}

#[test]
fn a_linearizable_read_that_fails_leaves_no_cursor_open() {
    let mut set = Set::started();
    let mut peer = set.peer(0);
    (100..120).for_each(|id| assert_ok(&insert(&mut peer, id, "{w: 3}")));
    let find = "{find: 'rows', batchSize: 2, readConcern: {level: 'linearizable'}, maxTimeMS: 30000}";
    let open = |peer: &mut Peer| {
        let status = peer.run("admin", "{serverStatus: 1}");
        let cursor = status.as_ref().get("metrics").and_then(ValueRef::as_document);
        let cursor = cursor.and_then(|metrics| metrics.get("cursor")).and_then(ValueRef::as_document);
        let open = cursor.and_then(|cursor| cursor.get("open")).and_then(ValueRef::as_document);
        open.and_then(|open| open.get("total")).and_then(number::as_i64_exact).expect("a count of open cursors")
    };
    // A read that succeeds has a cursor.
    assert_ok(&peer.run("test", find));
    assert_eq!(open(&mut peer), 1);
    set.servers[1].kill();
    set.servers[2].kill();
    let alone = peer.run("test", &find.replace("30000", "300"));
    assert!([50, 10107].contains(&whole(&alone, "code")), "{alone:?}");
    assert_eq!(open(&mut peer), 1);
}

#[test]
fn a_linearizable_read_needs_a_majority_and_a_primary() {
    let mut set = Set::started();
    let mut peer = set.peer(0);
    assert_ok(&insert(&mut peer, 1, "{w: 1}"));
    let find = "{find: 'rows', filter: {_id: 1}, readConcern: {level: 'linearizable'}, maxTimeMS: 30000}";
    assert_eq!(super::first_batch(&peer.run("test", find)), ["{_id: NumberLong(1)}"]);
    let secondary = find.replace("}, maxTimeMS", "}, $readPreference: {mode: 'nearest'}, maxTimeMS");
    assert_eq!(whole(&set.peer(1).run("test", &secondary), "code"), 10107);
    set.servers[1].kill();
    set.servers[2].kill();
    // It ends with its time, or because the primary has found that it has no majority.
    let alone = peer.run("test", &find.replace("30000", "200"));
    assert!([50, 10107].contains(&whole(&alone, "code")), "{alone:?}");
    assert!(alone.as_ref().get("cursor").is_none(), "{alone:?}");
}
