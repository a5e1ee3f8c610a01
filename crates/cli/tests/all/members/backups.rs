//! Backups of a set: the archive of its log follows the set through elections.

use super::{MAJORITY, Set, THREE, assert_ok, insert, whole};
use crate::backups::writer::{Writer, now_ms};
use crate::peer::{Peer, binary};
use crate::tool::connect;
use bunko_backup::format_ms;
use bunko_bson::ValueRef;
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that is killed when it is dropped.
struct Follower(Child);

impl Follower {
    fn start(uri: &str, to: &Path, log: &Path) -> Self {
        let mut command = Command::new(binary());
        command.args(["backup", "--follow", "--interval", "1", "--uri", uri, "--to"]).arg(to);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(log).expect("a file"));
        Self(command.spawn().expect("it runs"))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_archived(to: &Path, ms: u64) -> bool {
    let listed = bunko_backup::list(&bunko_backup::Place::directory(to)).unwrap_or_default();
    let last = listed.last().and_then(|last| bunko_backup::parse_ms(&last.to).ok());
    last.is_some_and(|last| last >= ms)
}

#[test]
fn an_archive_follows_a_set_through_a_step_down_a_kill_and_a_rollback() {
    let mut set = Set::start(3, &["--sync-delay", "1"]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let hosts: Vec<_> = set.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let uri = format!("mongodb://{}/?replicaSet=rs&connectTimeoutMS=10000", hosts.join(","));
    let scratch = temporary_dbpath();
    let (to, log) = (scratch.path().join("backups"), scratch.path().join("follow.log"));
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let mut follower = Follower::start(&uri, &to, &log);
    let mut writer = Writer::start(&uri, "set", 1000);
    let goes_on = |what: &str, follower: &mut Follower| {
        let (before, now) = (writer.acknowledged(), now_ms());
        wait_until(&format!("writes go on after {what}"), || writer.acknowledged() >= before + 20);
        wait_until(&format!("the archive goes on after {what}: {}", said()), || {
            assert!(follower.0.try_wait().expect("a child").is_none(), "the archive has ended: {}", said());
            is_archived(&to, now)
        });
    };
    goes_on("the start", &mut follower);
    let mut moments = vec![now_ms()];

    // The primary steps down, and stays a member.
    assert_ok(&set.peer(0).run("admin", "{replSetStepDown: 600}"));
    let second = set.primary(&[1, 2]);
    goes_on("a step-down", &mut follower);
    wait_for_the_clock(&set, second);
    moments.push(now_ms());

    // The primary is killed, and comes back.
    set.servers[second].kill();
    assert_ok(&set.peer(0).run("admin", "{replSetFreeze: 0}"));
    let third = set.primary(&[0, 3 - second]);
    goes_on("a kill", &mut follower);
    wait_for_the_clock(&set, third);
    moments.push(now_ms());
    set.servers[second] = set.server(second);
    set.wait_for_state(second, "SECONDARY");

    // A primary without the others writes what the set takes back later.
    let rest: Vec<_> = (0..3).filter(|member| *member != third).collect();
    for member in &rest {
        set.servers[*member].kill();
    }
    let alone = insert(&mut set.peer(third), 1000, "{w: 1}");
    assert!([0, 10107].contains(&whole(&alone, "code")), "{alone:?}");
    std::thread::sleep(std::time::Duration::from_secs(2));
    set.servers[third].kill();
    for member in &rest {
        set.servers[*member] = set.server(*member);
    }
    let last = set.primary(&rest);
    assert_ok(&insert(&mut set.peer(last), 1, MAJORITY));
    set.servers[third] = set.server(third);
    set.wait_for_state(third, "SECONDARY");
    goes_on("a rollback", &mut follower);
    writer.stop();
    wait_for_the_clock(&set, last);
    let end = now_ms();
    wait_until("the archive has the end", || is_archived(&to, end));
    moments.push(end);
    drop(follower);
    assert!(!said().contains("a gap:"), "{}", said());

    for (number, moment) in moments.into_iter().enumerate() {
        let dbpath = scratch.path().join(format!("restored-{number}"));
        check(&writer, (&to, &dbpath), moment);
    }
}

/// Waits until the times of writes are no longer ahead of the clock: a term begins a new second.
fn wait_for_the_clock(set: &Set, primary: usize) {
    wait_until("the clock reaches the times of writes", || {
        let reply = set.peer(primary).run("admin", "{ping: 1}");
        let Some(ValueRef::Timestamp(time)) = reply.as_ref().get("operationTime") else { return false };
        u64::from(time.seconds) <= now_ms() / 1000
    });
}

/// Restores the set's backups to a moment, and compares the writer's documents.
fn check(writer: &Writer, (to, dbpath): (&Path, &Path), moment: u64) {
    let mut restore = Command::new(binary());
    restore.args(["restore", "--to-time", &format_ms(moment), "--backup"]).arg(to).arg("--dbpath").arg(dbpath);
    let output = restore.output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let server = Server::start(&binary(), dbpath, &[]).expect("it starts");
    assert!(writer.check(&mut connect(server.address()), moment) > 0);
    let mut peer = Peer::connect(server.address());
    let taken_back = peer.run("test", "{count: 'rows', query: {_id: 1000}}");
    assert_eq!(whole(&taken_back, "n"), 0, "a write that the set took back was restored");
}
