//! A disk that fills up and is freed again: writes are refused with the reason, reads go on, nothing is lost, and
//! deletes make room.
//!
//! Needs root, loop devices and mkfs.ext4, so it runs only from `tests/full_disk/run`.

use crate::disk_image::{Mounted, sh, text};
use crate::oracle::durable_engines;
use crate::peer::{Peer, binary, code};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef, number::as_i64_exact};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::Server;
use bunko_testkit::random::Random;
use std::path::Path;
use std::process::Command;

const OUT_OF_DISK_SPACE: i32 = 14031;
/// Sizes of the disk and of the ballast, a file that makes room when it is removed.
const DISK: &str = "200M";
const BALLAST: &str = "90M";

fn start(engine: &str, dbpath: &Path) -> Server {
    Server::start(&binary(), dbpath, &["--storage-engine", engine]).expect("the server starts")
}

/// Incompressible text that follows from a document's number.
fn noise(of: i32, length: usize) -> String {
    Random(of as u64).text(length)
}

fn pad_of(id: i32) -> String {
    noise(id, 1_000_000)
}

/// Inserts a document of a megabyte whose text follows from its `_id`; returns the error code, or 0.
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

/// Inserts until the disk is full; returns the acknowledged ids.
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

/// Checks that every acknowledged document exists and is complete, and that no other document exists.
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
    // No blocks are reserved for root, because the test runs as root.
    sh("mkfs.ext4", &["-q", "-F", "-m", "0", text(&image)]);
    let mounted = Mounted::new(&image, work.path().join("disk"));
    let ballast = mounted.0.join("ballast");
    sh("fallocate", &["-l", BALLAST, text(&ballast)]);

    let dbpath = mounted.0.join("data");
    let mut server = start(engine, &dbpath);
    let first = fill(&server, 0);
    assert!(first.len() > 30, "only {} documents fit", first.len());
    check(&server, first.end);
    // Writes are refused again and again while the server stays up, also after a checkpoint that finds no room.
    let mut peer = Peer::connect(server.address());
    for _ in 0..5 {
        assert_eq!(insert(&mut peer, first.end), OUT_OF_DISK_SPACE);
    }
    peer.run("admin", "{fsync: 1}");
    check(&server, first.end);

    // A server that was killed starts again without any room, and can be read.
    server.kill();
    let mut server = start(engine, &dbpath);
    check(&server, first.end);
    // The replayed state may need a little less space than the killed server did.
    let few = fill(&server, first.end);
    assert!(few.len() <= 2, "{} documents fit onto a full disk", few.len());

    std::fs::remove_file(&ballast).expect("removed");
    let mut peer = Peer::connect(server.address());
    wait_until("there is room for a document", || insert(&mut peer, few.end) == 0);
    let second = fill(&server, few.end + 1);
    check(&server, second.end);
    // The last checkpoint may find no room; then the server reports it, and the log still has everything.
    let is_closed = server.terminate().success();
    server.kill();
    assert!(
        is_closed || server.output_tail().contains("bunko: cannot close the data directory"),
        "{}",
        server.output_tail()
    );
    check(&start(engine, &dbpath), second.end);
}

/// Time at which the full disk is emptied.
#[derive(Clone, Copy, Debug)]
enum When {
    AtOnce,
    AfterRestart,
    AfterKill,
}

/// Commands that empty the disk, one after the other. Writes succeed again afterwards.
const EMPTYING: &[&[&str]] = &[
    &["{delete: 'filled', deletes: [{q: {}, limit: 0}]}"],
    &["{drop: 'filled'}"],
    &["{dropDatabase: 1}"],
    &[
        "{dropIndexes: 'filled', index: '*'}",
        "{compact: 'filled'}",
        "{delete: 'filled', deletes: [{q: {_id: {$gt: 10}}, limit: 0}]}",
    ],
];
const EMPTIED: &[(&str, When)] = &[("200M", When::AtOnce), ("200M", When::AfterKill), ("600M", When::AfterRestart)];
/// Sizes of the documents that fill a disk, in bytes: first large ones, then smaller ones for the remaining gaps.
const FILLING_BYTES: [usize; 3] = [20_000, 1000, 10];

#[test]
#[ignore = "needs root and loop devices; tests/full_disk/run runs it"]
fn a_disk_that_data_has_filled_can_be_emptied() {
    for engine in durable_engines() {
        for (number, commands) in EMPTYING.iter().enumerate() {
            let (size, when) = EMPTIED[number % EMPTIED.len()];
            empty_the_disk_of(engine, size, when, commands);
        }
    }
}

/// Inserts documents of that size until the disk is full; returns their number.
fn fill_with(peer: &mut Peer, bytes: usize, first: i32) -> i32 {
    let at_once = (400_000 / bytes).clamp(1, 500) as i32;
    for batch in 0..100_000 {
        let from = first + batch * at_once;
        let documents: ArrayBuf = (from..from + at_once)
            .map(|id| {
                DocumentBuf::new()
                    .with("_id", id)
                    .with("k", id.wrapping_mul(7919) % 100_003)
                    .with("s", &*noise(id, bytes))
            })
            .collect::<Vec<_>>()
            .iter()
            .collect();
        let body = DocumentBuf::new().with("insert", "filled").with("documents", &documents).with("$db", "test");
        let reply = peer.run_body(body.as_ref());
        let inserted = reply.as_ref().get("n").and_then(as_i64_exact).unwrap_or(0) as i32;
        if inserted < at_once {
            let errors = reply.as_ref().get("writeErrors").and_then(ValueRef::as_array);
            let first = errors.and_then(|errors| errors.iter().next().and_then(ValueRef::as_document).map(code));
            assert_eq!(first.unwrap_or_else(|| code(reply.as_ref())), OUT_OF_DISK_SPACE, "{:?}", reply.as_ref());
            return from + inserted;
        }
    }
    panic!("more fits onto the disk than it has");
}

fn empty_the_disk_of(engine: &str, size: &str, when: When, commands: &[&str]) {
    let case = format!("{engine}, {size}, {when:?}, {commands:?}");
    let work = tempfile::tempdir().expect("temporary directory");
    let image = work.path().join("disk.ext4");
    sh("truncate", &["-s", size, text(&image)]);
    sh("mkfs.ext4", &["-q", "-F", "-m", "0", text(&image)]);
    let mounted = Mounted::new(&image, work.path().join("disk"));
    let dbpath = mounted.0.join("data");
    let mut server = start(engine, &dbpath);
    let mut peer = Peer::connect(server.address());
    peer.run("test", "{createIndexes: 'filled', indexes: [{key: {k: 1}, name: 'k_1'}]}");
    let filled = FILLING_BYTES.into_iter().fold(0, |first, bytes| fill_with(&mut peer, bytes, first));
    match when {
        When::AtOnce => {}
        // The last checkpoint may find no room; then the server reports it.
        When::AfterRestart => drop(server.terminate()),
        When::AfterKill => server.kill(),
    }
    if !matches!(when, When::AtOnce) {
        server.kill();
        server = start(engine, &dbpath);
        peer = Peer::connect(server.address());
    }
    assert_eq!(peer.text("test", "{count: 'filled'}"), format!("{{n: {filled}, ok: 1.0}}"), "{case}");
    for command in commands {
        let reply = peer.run("test", command);
        assert_eq!(code(reply.as_ref()), 0, "a promise is broken: {case}: {command}: {:?}", reply.as_ref());
        assert!(reply.as_ref().get("writeErrors").is_none(), "a promise is broken: {case}: {:?}", reply.as_ref());
    }
    let kept = peer.run("test", "{count: 'filled'}");
    let kept = kept.as_ref().get("n").and_then(as_i64_exact).expect("a count");
    assert_eq!(kept, if commands.len() > 1 { 11 } else { 0 }, "{case}");
    // Large writes succeed at once.
    for id in 1000..1010 {
        assert_eq!(insert(&mut peer, id), 0, "a promise is broken: {case}: no room for document {id}");
    }
    let status = peer.run("admin", "{serverStatus: 1}");
    let bunko = status.as_ref().get("bunko").and_then(ValueRef::as_document).expect("a section");
    let reserve = bunko.get("diskReserve").and_then(ValueRef::as_document).expect("a section");
    assert!(matches!(reserve.get("isInUse"), Some(ValueRef::Boolean(false))), "{case}: {reserve:?}");
    server.kill();
    let server = start(engine, &dbpath);
    let mut peer = Peer::connect(server.address());
    assert_eq!(peer.text("test", "{count: 'filled'}"), format!("{{n: {}, ok: 1.0}}", kept + 10), "{case}");
    let validated = peer.run("test", "{validate: 'filled', full: true}");
    assert!(matches!(validated.as_ref().get("valid"), Some(ValueRef::Boolean(true))), "{case}: {validated:?}");
}

/// Free bytes of the disk that the server keeps for data: spills may not use them.
const LEFT_BYTES: u64 = 500 << 20;

/// Free bytes on the disk at a path.
fn free_bytes(path: &Path) -> u64 {
    let output = Command::new("stat").args(["-f", "-c", "%a %S", text(path)]).output().expect("stat");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    output.split_whitespace().map(|number| number.parse::<u64>().expect("a number")).product()
}

/// Inserts a document with half a megabyte of incompressible text.
fn insert_noise(peer: &mut Peer, id: i32) {
    let noise = noise(id, 512 << 10);
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

    // Room for half of the sort's data: the sort begins, and runs for a while.
    let ballast = mounted.0.join("ballast");
    let wanted = LEFT_BYTES + (28 << 20);
    let mut ballast_bytes = free_bytes(&mounted.0) - wanted;
    sh("fallocate", &["-l", &ballast_bytes.to_string(), text(&ballast)]);
    // The server may have taken disk meanwhile, for documents that it moves out of the log.
    let mut free = free_bytes(&mounted.0);
    for _ in 0..10 {
        if free > LEFT_BYTES + (20 << 20) {
            break;
        }
        ballast_bytes -= wanted - free;
        sh("truncate", &["-s", &ballast_bytes.to_string(), text(&ballast)]);
        free = free_bytes(&mounted.0);
    }
    assert!(free > LEFT_BYTES + (20 << 20), "{free} bytes are free");
    let window = "{aggregate: 'sorted', pipeline: [{$setWindowFields: {output: {n: {$sum: 1}}}}, {$project: {n: 1}}, \
                  {$limit: 1}], cursor: {}}";
    peer.run("admin", "{setParameter: 1, internalDocumentSourceSetWindowFieldsMaxMemoryBytes: 4000000}");
    for pipeline in [sort, window] {
        let refused = peer.run("test", pipeline);
        assert_eq!(code(refused.as_ref()), OUT_OF_DISK_SPACE, "{:?}", refused.as_ref());
        assert_eq!(server.open_files_in("scratch"), 0, "files are left open");
        // The log may have taken a step of 8 MiB meanwhile, and documents may be on their way from the log to an
        // extent.
        wait_until("their room is free again", || free_bytes(&mounted.0) + (12 << 20) >= free);
    }
    // Other commands still work.
    assert_eq!(peer.text("test", "{count: 'sorted', query: {k: {$lt: 50}}}"), "{n: 50, ok: 1.0}");
    insert_noise(&mut peer, 101);

    std::fs::remove_file(&ballast).expect("removed");
    let sorted = peer.text("test", sort);
    assert!(sorted.contains("{_id: null, n: 102, first: 0, noise: 524288}"), "{sorted}");
    let counted = peer.text("test", window);
    assert!(counted.contains("n: 102}"), "{counted}");
    assert_eq!(server.open_files_in("scratch"), 0);
}
