//! kill -9 of dump, of restore, and of the server during a restore: with `--resume` the result is as if nothing had
//! happened.

use crate::peer;
use crate::tool::{archive, connect, documents, drop_database, fail, insert, spawn, succeed, text};
use bunko_bson::DocumentBuf;
use bunko_testkit::process::{Server, fixed_port, temporary_dbpath};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

const KILLS: u64 = 12;
/// Minimum number of kills that must fall between beginning and end: a machine's speed changes from moment to moment.
const RESUMED_MIN: usize = 3;
const DATABASE: &str = "resumed";
const DOCUMENTS: i32 = 15_000;

/// Inserts several collections, one of them too large to be complete before the kill.
fn fill(address: SocketAddr) {
    let mut connection = connect(address);
    let document = |number: i32| DocumentBuf::new().with("_id", number).with("pad", "resume ".repeat(140).as_str());
    let documents: Vec<_> = (0..DOCUMENTS).map(document).collect();
    insert(&mut connection, DATABASE, "large", &documents);
    for name in ["a", "b", "c"] {
        insert(&mut connection, DATABASE, name, &documents[..500]);
    }
}

fn started(dbpath: &Path) -> Server {
    Server::start(&peer::binary(), dbpath, &[]).expect("the server starts")
}

/// Lets a tool run for a part of its usual time, and kills it.
fn kill_within(tool: &str, address: SocketAddr, arguments: &[&str], round: u64, whole: Duration) {
    let mut child = spawn(tool, address, arguments);
    // Not round numbers, so that kills fall into all phases.
    std::thread::sleep(whole * (1 + (round * 7 % KILLS) as u32) / (KILLS as u32 + 1));
    child.kill().expect("a child may be killed");
    child.wait().expect("a child can be waited for");
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = std::time::Instant::now();
    work();
    begun.elapsed()
}

#[test]
fn a_dump_that_was_killed_goes_on() {
    let dbpath = temporary_dbpath();
    let server = started(dbpath.path());
    fill(server.address());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("archive");
    let as_archive = archive(&file);
    let files = directory.path().join("files");
    let mut resumed = 0;
    for (to, from) in
        [(vec![as_archive.as_str(), "--zstd"], as_archive.as_str()), (vec!["--out", text(&files)], text(&files))]
    {
        let dump: Vec<_> = ["--db", DATABASE].into_iter().chain(to).collect();
        let whole = timed(|| drop(succeed("dump", server.address(), &dump)));
        let state =
            if from == as_archive { directory.path().join("archive.resume") } else { files.join(".bunko-resume") };
        for round in 0..KILLS / 2 {
            kill_within("dump", server.address(), &dump, round, whole);
            resumed += usize::from(state.exists());
            let rest = dump.iter().copied().chain(state.exists().then_some("--resume"));
            succeed("dump", server.address(), &rest.collect::<Vec<_>>());
            assert!(!state.exists());
            let renamed = ["--drop", from, "--nsFrom", "resumed.*", "--nsTo", "copy.*", "--verify"];
            let said = succeed("restore", server.address(), &renamed);
            let documents = DOCUMENTS + 1500;
            assert!(said.contains(&format!("{documents} document(s) restored, 0 failed")), "round {round}: {said}");
        }
    }
    assert!(resumed >= RESUMED_MIN, "only {resumed} of {KILLS} fell into the dump");
}

#[test]
fn a_restore_that_was_killed_goes_on_without_duplicates() {
    let dbpath = temporary_dbpath();
    let server = started(dbpath.path());
    fill(server.address());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let state = directory.path().join("archive.restore-resume");
    let file = archive(&directory.path().join("archive"));
    succeed("dump", server.address(), &["--db", DATABASE, &file, "--lz4"]);
    let mut connection = connect(server.address());
    drop_database(&mut connection, DATABASE);
    let whole = timed(|| drop(succeed("restore", server.address(), &[&file])));
    let mut resumed = 0;
    for round in 0..KILLS {
        drop_database(&mut connection, DATABASE);
        kill_within("restore", server.address(), &[&file], round, whole);
        resumed += usize::from(state.exists());
        let rest = if state.exists() { "--resume" } else { "--drop" };
        let said = succeed("restore", server.address(), &[&file, rest, "--verify"]);
        assert!(said.contains("verified") && !state.exists(), "round {round}: {said}");
    }
    assert!(resumed >= RESUMED_MIN, "only {resumed} of {KILLS} fell into the restore");
}

#[test]
fn a_restore_survives_its_server() {
    let dbpath = temporary_dbpath();
    // The state file identifies a server by its address, and nothing else takes the port while the server is down.
    let port = fixed_port().to_string();
    let start =
        || Server::run(&peer::binary(), &["--dbpath", text(dbpath.path()), "--port", &port, "--no-unix-socket"]);
    let mut server = start().expect("the server starts");
    fill(server.address());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = archive(&directory.path().join("archive"));
    succeed("dump", server.address(), &["--db", DATABASE, &file]);
    let state = directory.path().join("state");
    let restore = [file.as_str(), "--resumeFile", text(&state)];
    drop_database(&mut connect(server.address()), DATABASE);
    let whole = timed(|| drop(succeed("restore", server.address(), &restore)));
    for round in 0..5 {
        drop_database(&mut connect(server.address()), DATABASE);
        let mut child = spawn("restore", server.address(), &restore);
        std::thread::sleep(whole * (1 + round) / 6);
        server.kill();
        // The tool would try for a while to reach the server.
        child.kill().expect("a child may be killed");
        child.wait().expect("a child can be waited for");
        server = start().expect("the server starts");
        let rest = if state.exists() { "--resume" } else { "--drop" };
        let said = succeed("restore", server.address(), &[&restore[..], &[rest, "--verify"]].concat());
        assert!(said.contains("verified"), "round {round}: {said}");
    }
}

/// A user who does not know how far a run came gives the command again with `--resume`.
#[test]
fn without_a_state_both_begin_anew_and_say_so() {
    let dbpath = temporary_dbpath();
    let server = started(dbpath.path());
    fill(server.address());
    let mut connection = connect(server.address());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("archive");
    let file = archive(&path);
    let dump = ["--db", DATABASE, &file, "--resume"];
    let said = succeed("dump", server.address(), &dump);
    assert!(said.contains("archive.resume is not there: nothing to continue, so the dump starts over"), "{said}");
    let said = fail("dump", server.address(), &dump);
    assert!(said.contains("archive.resume is not there, but ") && said.contains("was finished"), "{said}");

    let before = documents(&mut connection, DATABASE, "large");
    let state = directory.path().join("archive.restore-resume");
    let restore = [file.as_str(), "--resume", "--verify"];
    let whole = timed(|| {
        drop_database(&mut connection, DATABASE);
        let said = succeed("restore", server.address(), &restore);
        assert!(said.contains("archive.restore-resume is not there or empty: nothing to continue"), "{said}");
    });
    // Round 0: all documents exist. Rounds 1 and 2: a part of them exists after a kill, and the state file is deleted.
    for round in 0..3 {
        if round > 0 {
            drop_database(&mut connection, DATABASE);
            kill_within("restore", server.address(), &[&file], 3 * round, whole);
            let _ = std::fs::remove_file(&state);
        }
        let said = succeed("restore", server.address(), &restore);
        let documents_all = DOCUMENTS + 1500;
        assert!(said.contains(&format!("{documents_all} document(s) restored, 0 failed")), "round {round}: {said}");
        assert!(said.contains("verified") && said.contains("starts over") && !state.exists(), "round {round}: {said}");
    }
    assert!(documents(&mut connection, DATABASE, "large") == before);
    // A document that differs from the dump is reported as a duplicate key.
    let changed = "{update: 'a', updates: [{q: {_id: 7}, u: {$set: {pad: 'another'}}}]}";
    peer::Peer::connect(server.address()).text(DATABASE, changed);
    let said = fail("restore", server.address(), &[&file, "--resume"]);
    assert!(said.contains("_id 7: E11000") && said.contains("1 failed"), "{said}");
}
