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
use std::process::Command;
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

/// What the server leaves of a disk to the data.
const LEFT_BYTES: u64 = 500 << 20;

/// Bytes that are free on the disk at a path.
fn free_bytes(path: &Path) -> u64 {
    let output = Command::new("stat").args(["-f", "-c", "%a %S", text(path)]).output().expect("stat");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    output.split_whitespace().map(|number| number.parse::<u64>().expect("a number")).product()
}

/// Inserts a document with half a megabyte in which a compressor finds nothing.
fn insert_noise(peer: &mut Peer, id: i32) {
    let mut state = id as u32 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + (state >> 26) as u8)
    };
    let noise: String = (0..512 << 10).map(|_| next()).collect();
    let documents: ArrayBuf =
        [&DocumentBuf::new().with("_id", id).with("k", id * 37 % 101).with("noise", &*noise)].into_iter().collect();
    let body = DocumentBuf::new().with("insert", "sorted").with("documents", &documents).with("$db", "test");
    assert_eq!(code(peer.run_body(body.as_ref()).as_ref()), 0);
}

#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_sort_that_finds_no_room_on_its_way_fails_alone() {
    let work = tempfile::tempdir().expect("temporary directory");
    let image = work.path().join("disk.ext4");
    sh("truncate", &["-s", "1G", text(&image)]);
    sh("mkfs.ext4", &["-q", "-F", "-m", "0", text(&image)]);
    let mounted = Mounted::new(&image, work.path().join("disk"));
    let server = start("lsm", &mounted.0.join("data"));
    let mut peer = Peer::connect(server.address());
    (0..101).for_each(|id| insert_noise(&mut peer, id));
    peer.run("admin", "{fsync: 1}");
    peer.run("admin", "{setParameter: 1, internalQueryMaxBlockingSortMemoryUsageBytes: 4000000}");
    let sort = "{aggregate: 'sorted', pipeline: [{$sort: {k: 1}}, {$group: {_id: null, n: {$sum: 1}, first: {$first: '$k'}, \
                noise: {$max: {$strLenBytes: '$noise'}}}}], cursor: {}}";

    // Room for the first half of what is sorted: the sort begins, and goes on for a while.
    let ballast = mounted.0.join("ballast");
    let ballast_bytes = free_bytes(&mounted.0) - LEFT_BYTES - (24 << 20);
    sh("fallocate", &["-l", &ballast_bytes.to_string(), text(&ballast)]);
    let free = free_bytes(&mounted.0);
    assert!(free > LEFT_BYTES + (20 << 20), "{free} bytes are free");
    let window = "{aggregate: 'sorted', pipeline: [{$setWindowFields: {output: {n: {$sum: 1}}}}, {$project: {n: 1}}, \
                  {$limit: 1}], cursor: {}}";
    peer.run("admin", "{setParameter: 1, internalDocumentSourceSetWindowFieldsMaxMemoryBytes: 4000000}");
    for pipeline in [sort, window] {
        let refused = peer.run("test", pipeline);
        assert_eq!(code(refused.as_ref()), OUT_OF_DISK_SPACE, "{:?}", refused.as_ref());
        assert_eq!(server.open_files_in("scratch"), 0, "files are left open");
        assert!(free_bytes(&mounted.0) + (1 << 20) > free, "their room is not free again");
    }
    // Everything else goes on.
    assert_eq!(peer.text("test", "{count: 'sorted', query: {k: {$lt: 50}}}"), "{n: 50, ok: 1.0}");
    insert_noise(&mut peer, 101);

    std::fs::remove_file(&ballast).expect("removed");
    let sorted = peer.text("test", sort);
    assert!(sorted.contains("{_id: null, n: 102, first: 0, noise: 524288}"), "{sorted}");
    let counted = peer.text("test", window);
    assert!(counted.contains("n: 102}"), "{counted}");
    assert_eq!(server.open_files_in("scratch"), 0);
}
