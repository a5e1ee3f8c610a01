//! A disk that fills up and is freed again: writes are refused with their reason, reads go on, nothing is lost.
//!
//! Needs root, loop devices and mkfs.ext4, so it runs only from `tests/full_disk/run`.

mod disk_image;
mod oracle;
mod peer;

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_testkit::process::Server;
use disk_image::{Mounted, sh, text};
use oracle::durable_engines;
use peer::{Peer, binary, code};
use std::path::Path;
use std::time::{Duration, Instant};

const OUT_OF_DISK_SPACE: i32 = 14031;
/// The log takes its disk in segments of 64 MiB; the ballast makes room for one more when it goes.
const DISK: &str = "200M";
const BALLAST: &str = "90M";
/// Longest wait for writes to work again once there is room.
const RELIEF_TIMEOUT: Duration = Duration::from_secs(5);

fn start(engine: &str, dbpath: &Path) -> Server {
    Server::start(&binary(), dbpath, &["--storage-engine", engine]).expect("the server starts")
}

/// A megabyte that tells whose it is.
fn pad_of(id: i32) -> String {
    format!("{id:->1000}").repeat(1000)
}

/// Inserts a document of a megabyte that tells its `_id`; the code of the failure, or 0.
fn insert(peer: &mut Peer, id: i32) -> i32 {
    let pad = pad_of(id);
    let documents: ArrayBuf = [&DocumentBuf::new().with("_id", id).with("pad", &*pad)].into_iter().collect();
    let body = DocumentBuf::new().with("insert", "filled").with("documents", &documents).with("$db", "test");
    let reply = peer.run_body(body.as_ref());
    if let Some(errors) = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array) {
        return errors.iter().filter_map(ValueRef::as_document).map(code).next().unwrap_or(-1);
    }
    code(reply.as_ref())
}

/// Inserts until the disk is full; the ids that were acknowledged.
fn fill(server: &Server, first: i32) -> std::ops::Range<i32> {
    let mut peer = Peer::connect(server.address());
    for id in first..first + 200 {
        match insert(&mut peer, id) {
            0 => {}
            OUT_OF_DISK_SPACE => return first..id,
            other => panic!("document {id} is refused with code {other}"),
        }
    }
    panic!("200 MB fit onto the disk");
}

/// Every acknowledged document is there and whole, and nothing else is.
fn check(server: &Server, acknowledged: i32) {
    let mut peer = Peer::connect(server.address());
    assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
    for id in 0..acknowledged {
        let reply = peer.run("test", &format!("{{find: 'filled', filter: {{_id: {id}}}}}"));
        let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
        let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
        let document = batch.and_then(|batch| batch.iter().next()).and_then(ValueRef::as_document);
        let pad = document.and_then(|document| document.get("pad")).and_then(ValueRef::as_str);
        assert!(pad == Some(&*pad_of(id)), "document {id} is lost or damaged");
    }
    assert_eq!(peer.text("test", "{count: 'filled'}"), format!("{{n: {acknowledged}, ok: 1.0}}"));
    let validated = peer.run("test", "{validate: 'filled', full: true}");
    assert!(matches!(validated.as_ref().get("valid"), Some(ValueRef::Boolean(true))), "{validated:?}");
}

#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    durable_engines().into_iter().for_each(fill_the_disk_of);
}

fn fill_the_disk_of(engine: &str) {
    let work = tempfile::tempdir().expect("temporary directory");
    let image = work.path().join("disk.ext4");
    sh("truncate", &["-s", DISK, text(&image)]);
    // No blocks kept back for root, as whom this runs.
    sh("mkfs.ext4", &["-q", "-F", "-m", "0", text(&image)]);
    let mounted = Mounted::new(&image, work.path().join("disk"));
    let ballast = mounted.0.join("ballast");
    sh("fallocate", &["-l", BALLAST, text(&ballast)]);

    let dbpath = mounted.0.join("data");
    let mut server = start(engine, &dbpath);
    let first = fill(&server, 0);
    assert!(first.len() > 30, "only {} documents fit", first.len());
    check(&server, first.end);
    // Refused again and again, and alive all the time; so is a checkpoint that finds no room.
    let mut peer = Peer::connect(server.address());
    for _ in 0..5 {
        assert_eq!(insert(&mut peer, first.end), OUT_OF_DISK_SPACE);
    }
    peer.run("admin", "{fsync: 1}");
    check(&server, first.end);

    // A server that was killed comes up again without any room, to be read from.
    server.kill();
    let mut server = start(engine, &dbpath);
    check(&server, first.end);
    let refused = fill(&server, first.end);
    assert!(refused.is_empty(), "{} documents fit into the rest of a full segment", refused.len());

    std::fs::remove_file(&ballast).expect("removed");
    let mut peer = Peer::connect(server.address());
    let begun = Instant::now();
    while insert(&mut peer, first.end) != 0 {
        assert!(begun.elapsed() < RELIEF_TIMEOUT, "still refused {:?} after there is room", begun.elapsed());
        std::thread::sleep(Duration::from_millis(10));
    }
    let second = fill(&server, first.end + 1);
    check(&server, second.end);
    // The last checkpoint may find no room; then it says so, and the log still has everything.
    let is_closed = server.terminate().success();
    server.kill();
    assert!(
        is_closed || server.output_tail().contains("bunko: cannot close the data directory"),
        "{}",
        server.output_tail()
    );
    check(&start(engine, &dbpath), second.end);
}
