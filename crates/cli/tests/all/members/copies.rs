//! A copy of a set that fails over while it is followed.

use super::{Set, THREE, assert_ok};
use crate::backups::writer::Writer;
use crate::peer::{Peer, binary};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use std::process::{Command, Stdio};

fn hashes(peer: &mut Peer) -> String {
    let reply = peer.text("ledger", "{dbHash: 1}");
    let (_, hashes) = reply.split_once("collections: ").expect("hashes");
    hashes.split_once('}').expect("an end").0.to_owned()
}

#[test]
fn a_copy_follows_its_source_through_failovers_and_ends_equal() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    let hosts: Vec<_> = set.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let uri = format!("mongodb://{}/?replicaSet=rs&connectTimeoutMS=10000", hosts.join(","));
    let dbpath = temporary_dbpath();
    let target = Server::start(&binary(), dbpath.path(), &["--replSet", "rb", "--replSetHost", "127.0.0.1:1"]);
    let target = target.expect("it starts");
    let mut writer = Writer::start(&uri, "copied", 100);
    wait_until("writes", || writer.acknowledged() > 20);
    let log = dbpath.path().with_extension("copy.log");
    let copy = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        let to = format!("mongodb://{}/?directConnection=true", target.address());
        command.args(["copy", "--from", &uri, "--to", &to]).args(arguments).stdin(Stdio::null());
        command
    };
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let file = std::fs::File::create(&log).expect("a file");
    let mut follower =
        copy(&["--follow"]).stdout(file.try_clone().expect("a file")).stderr(file).spawn().expect("it runs");
    let mut peer = Peer::connect(target.address());
    let has = |peer: &mut Peer, number: usize| {
        let reply = peer.text("ledger", &format!("{{count: 'copied', query: {{write: {{$gte: {number}}}}}}}"));
        !reply.contains("n: 0,")
    };
    for round in 0..3 {
        let number = writer.acknowledged() + 20;
        wait_until(&format!("writes after round {round}"), || writer.acknowledged() > number);
        wait_until(&format!("the copy follows after round {round}: {}", said()), || {
            assert!(follower.try_wait().expect("a child").is_none(), "the copy has ended: {}", said());
            has(&mut peer, number)
        });
        let primary = set.primary(&[0, 1, 2]);
        match round {
            0 => assert_ok(&set.peer(primary).run("admin", "{replSetStepDown: 600}")),
            1 => {
                set.servers[primary].kill();
                let others: Vec<_> = (0..3).filter(|member| *member != primary).collect();
                set.primary(&others);
                set.servers[primary] = set.server(primary);
                set.wait_for_state(primary, "SECONDARY");
            }
            _ => {}
        }
    }
    writer.stop();
    follower.kill().expect("it runs");
    follower.wait().expect("it ends");
    let finished = copy(&["--finish"]).output().expect("it runs");
    let printed = String::from_utf8_lossy(&finished.stdout).into_owned() + &String::from_utf8_lossy(&finished.stderr);
    assert!(finished.status.success(), "{printed}\n{}", said());
    let primary = set.primary(&[0, 1, 2]);
    assert_eq!(hashes(&mut set.peer(primary)), hashes(&mut peer), "{printed}");
    drop(std::fs::remove_file(&log));
}
