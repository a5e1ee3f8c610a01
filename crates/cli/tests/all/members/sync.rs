//! Members that have lost their files, and members whose log the primary's cannot continue: they copy the data of another
//! one, and return.

use super::{MAJORITY, Set, THREE, assert_ok, insert, whole};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, ValueRef};
use bunko_client::Connection;
use bunko_testkit::patience::{wait_for, wait_until};
use bunko_testkit::random::Random;
use std::path::PathBuf;
use std::time::Duration;

const PAD_BYTES: usize = 400_000;
/// Number of documents of that size.
const LARGE: i64 = 40;
/// How often they are written; then the log has several segments more than its history needs.
const ROUNDS: usize = 10;

fn pad(round: usize) -> String {
    format!("{round} ").repeat(PAD_BYTES / 2)
}

impl Set {
    fn wipe(&mut self, member: usize) {
        self.servers[member].kill();
        for entry in std::fs::read_dir(self.directories[member].path()).expect("readable") {
            let path = entry.expect("readable").path();
            let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.expect("removed");
        }
    }

    fn start_again(&mut self, member: usize) {
        self.servers[member].kill();
        self.servers[member] = self.server(member);
    }

    fn first_segment(&self, member: usize) -> PathBuf {
        self.directories[member].path().join("log/000000000000.segment")
    }

    /// Writes on a member until its log and that of `other` no longer have their first segments.
    fn write_past_first_segments(&self, member: usize, other: usize) {
        let uri = format!("mongodb://127.0.0.1:{}/?directConnection=true", self.ports[member]);
        let mut connection = Connection::dial(&uri.parse().expect("a URI")).expect("it listens");
        let document = |id: i64| DocumentBuf::new().with("_id", id).with("pad", pad(0).as_str());
        let documents: ArrayBuf = (0..LARGE).map(document).collect::<Vec<_>>().iter().collect();
        let insert = DocumentBuf::new().with("insert", "large").with("documents", &documents);
        assert_ok(&connection.run_command("test", insert.as_ref()).expect("inserted"));
        for round in 1..ROUNDS {
            let set = DocumentBuf::new().with("$set", &DocumentBuf::new().with("pad", pad(round).as_str()));
            let update = DocumentBuf::new().with("q", &DocumentBuf::new()).with("u", &set).with("multi", true);
            let updates: ArrayBuf = [update].iter().collect();
            let update = DocumentBuf::new().with("update", "large").with("updates", &updates);
            assert_ok(&connection.run_command("test", update.as_ref()).expect("updated"));
        }
        wait_for(|| {
            for member in [member, other] {
                let mut peer = self.peer(member);
                assert_ok(&peer.run("admin", "{fsync: 1}"));
                peer.run("test", "{compact: 'large', force: true}");
            }
            let is_there = [member, other].iter().any(|member| self.first_segment(*member).exists());
            if is_there { Err(self.tails("a log still has its first segment")) } else { Ok(()) }
        });
    }

    /// A set whose member 1 is down, and whose primary's log begins after that member's end. Returns the primary too.
    fn far_ahead(engine: &str) -> (Self, usize) {
        let mut set = Self::start(3, &["--oplogSize", "1", "--storageEngine", engine]);
        assert_ok(&set.initiate(&THREE));
        set.primary(&[0]);
        (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
        assert_ok(&insert(&mut set.peer(0), 1, "{w: 3}"));
        set.servers[1].kill();
        // A primary keeps no more of its log for a member that it has not heard of since it started.
        set.start_again(0);
        let primary = set.primary(&[0, 2]);
        set.wait_for_state(2 - primary, "SECONDARY");
        set.write_past_first_segments(primary, 2 - primary);
        (set, primary)
    }

    /// Inserts a row on the primary, if there is one at this moment.
    fn try_insert(&self, id: i64) {
        let is_primary = |member: &usize| {
            let hello = self.ask(*member, "hello");
            hello.is_some_and(|hello| matches!(hello.as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(true))))
        };
        if let Some(primary) = [0, 2].into_iter().find(is_primary) {
            insert(&mut self.peer(primary), id, "{w: 1}");
        }
    }
}

fn initial_sync(status: &DocumentBuf) -> Option<String> {
    let sync = status.as_ref().get("initialSyncStatus").and_then(ValueRef::as_document)?;
    sync.get("method").and_then(ValueRef::as_str).map(str::to_owned)
}

#[test]
fn a_member_that_lost_its_files_returns_and_votes_again() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let mut peer = set.peer(0);
    for id in 0..20 {
        assert_ok(&insert(&mut peer, id, "{w: 3}"));
    }
    set.wipe(2);
    assert_ok(&insert(&mut peer, 20, MAJORITY));
    set.servers[2] = set.server(2);
    set.wait_for_state(2, "SECONDARY");
    assert_ok(&insert(&mut peer, 21, "{w: 3}"));
    set.assert_equal(&[0, 1, 2], &["test", "admin"]);
    wait_until("it remembers", || {
        !std::fs::read(set.directories[2].path().join("member")).expect("readable").windows(4).any(|at| at == b"Lost")
    });
    // Without its vote, no other member could be elected.
    set.servers[0].kill();
    let next = set.primary(&[1, 2]);
    assert_eq!(whole(&set.peer(next).run("test", "{count: 'rows'}"), "n"), 22);
    assert_ok(&insert(&mut set.peer(next), 22, MAJORITY));
}

#[test]
fn a_member_that_lost_its_vote_alone_asks_the_others_before_it_votes_again() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    assert_ok(&insert(&mut set.peer(0), 1, "{w: 3, j: true}"));
    set.servers[2].kill();
    std::fs::remove_file(set.directories[2].path().join("vote")).expect("it had taken over a term");
    set.servers[2] = set.server(2);
    set.servers[2].logged("This member has lost its files");
    set.servers[2].logged("The other members have told this one");
    set.wait_for_state(2, "SECONDARY");
    assert_ok(&insert(&mut set.peer(0), 2, "{w: 3}"));
    set.servers[0].kill();
    let next = set.primary(&[1, 2]);
    assert_ok(&insert(&mut set.peer(next), 3, MAJORITY));
}

#[test]
fn members_that_were_emptied_before_they_joined_do_not_wait_for_each_other() {
    let mut set = Set::start(3, &[]);
    assert_ok(&insert(&mut set.peer(0), 1, "{w: 1}"));
    // Something is in the way of the file by which they would join, so they are invited and stay what they are.
    for member in [1, 2] {
        std::fs::create_dir(set.directories[member].path().join("joining")).expect("made");
    }
    assert_ok(&set.initiate(&THREE));
    wait_until("both have been invited", || {
        let kept = std::fs::read(set.directories[0].path().join("member")).unwrap_or_default();
        kept.windows(7).filter(|name| name == b"server\0").count() == 2
    });
    for member in [1, 2] {
        set.wipe(member);
    }
    for member in [1, 2] {
        set.servers[member] = set.server(member);
    }
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    assert_ok(&insert(&mut set.peer(0), 2, "{w: 3}"));
    set.assert_equal(&[0, 1, 2], &["test"]);
}

#[test]
fn a_member_whose_log_is_too_old_copies_the_data_and_follows() {
    for engine in ["lsm", "mmap"] {
        let (mut set, primary) = Set::far_ahead(engine);
        set.servers[1] = set.server(1);
        let mut written = 1;
        let mut seen = None;
        wait_for(|| {
            written += 1;
            assert_ok(&insert(&mut set.peer(primary), written, "{w: 1}"));
            let status = set.ask(1, "replSetGetStatus");
            seen = seen.take().or_else(|| status.as_ref().and_then(initial_sync));
            let state = set.state(1);
            if state == "SECONDARY" && seen.is_some() { Ok(()) } else { Err(set.tails(&format!("{state} {seen:?}"))) }
        });
        assert_eq!(seen.as_deref(), Some("fileCopyBased"), "{engine}");
        wait_for(|| {
            written += 1;
            let reply = insert(&mut set.peer(primary), written, "{w: 3, j: true, wtimeout: 2000}");
            let is_everywhere = reply.as_ref().get("writeConcernError").is_none();
            if is_everywhere { Ok(()) } else { Err(set.tails(&format!("{reply:?}"))) }
        });
        set.assert_equal(&[0, 1, 2], &["test", "admin"]);
        assert!(!set.first_segment(1).exists(), "its log is the one of the primary");
        set.servers[primary].kill();
        let next = set.primary(&[1, 2 - primary]);
        let mut peer = set.peer(next);
        assert_eq!(whole(&peer.run("test", "{count: 'large'}"), "n"), LARGE, "{engine}");
        assert_eq!(whole(&peer.run("test", "{count: 'rows'}"), "n"), written, "{engine}");
        assert_ok(&insert(&mut peer, written + 1, MAJORITY));
    }
}

#[test]
fn kills_of_both_sides_end_in_equal_data() {
    let (mut set, primary) = Set::far_ahead("lsm");
    set.wipe(1);
    let mut random = Random(17);
    for round in 0..8 {
        set.start_again(1);
        // Any moment of the sync is a good one.
        std::thread::sleep(Duration::from_millis(100 + random.below(1_500)));
        set.try_insert(100 + round);
        if round % 3 == 2 {
            set.start_again(primary);
        }
    }
    set.start_again(1);
    let next = set.primary(&[0, 2]);
    (0..3).filter(|member| *member != next).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    // A primary that was elected a moment ago may still hand over.
    wait_for(|| {
        let written = insert(&mut set.peer(set.primary(&[0, 1, 2])), 1_000, "{w: 3, j: true, wtimeout: 8000}");
        let is_there = whole(&written, "n") == 1 || written.as_ref().get("writeErrors").is_some();
        let is_everywhere = is_there && written.as_ref().get("writeConcernError").is_none();
        if is_everywhere { Ok(()) } else { Err(set.tails(&format!("{written:?}"))) }
    });
    set.assert_equal(&[0, 1, 2], &["test", "admin"]);
    assert!(!set.directories[1].path().join("installing").exists());
}

#[test]
fn a_server_with_data_does_not_join_and_says_so() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    set.wipe(2);
    let port = set.ports[2].to_string();
    let directory = set.directories[2].path().to_str().expect("UTF-8").to_owned();
    let alone = ["--dbpath", &directory, "--port", &port, "--no-unix-socket"];
    set.servers[2] = bunko_testkit::process::Server::run(&crate::peer::binary(), &alone).expect("it starts");
    assert_ok(&set.peer(2).run("test", "{insert: 'own', documents: [{_id: 1}]}"));
    set.servers[2].kill();
    set.servers[2] = set.server(2);
    let told = wait_for(|| {
        let status = set.ask(0, "replSetGetStatus").expect("a status");
        let members = status.as_ref().get("members").and_then(ValueRef::as_array);
        let mut members = members.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document);
        let message = members.nth(2).and_then(|member| member.get("lastHeartbeatMessage")).and_then(ValueRef::as_str);
        let message = message.unwrap_or_default().to_owned();
        if message.contains("has data") { Ok(message) } else { Err(format!("the primary says {message:?}")) }
    });
    assert!(told.contains("test"), "{told}");
    set.servers[2].logged("does not join");
    assert_eq!(whole(&set.peer(2).run("test", "{count: 'own'}"), "n"), 1);
}
