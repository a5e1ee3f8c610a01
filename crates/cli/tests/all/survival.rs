//! Data after the end of the process: `memory` leaves nothing, and under `mmap` a disk that fails below the map ends
//! the process cleanly. With every engine, spilled data of stages is gone after the process.

use crate::peer::{self, Peer, binary};
use bunko_testkit::process::{Server, temporary_dbpath};
use std::fs;
use std::path::Path;

/// Exit status after a SIGBUS in a map.
const BUS_ERROR_STATUS: i32 = 14;

fn start(engine: &str, dbpath: &Path) -> Server {
    Server::start(&binary(), dbpath, &["--storage-engine", engine]).expect("the server starts")
}

fn insert(server: &Server) {
    let mut peer = Peer::connect(server.address());
    for id in 0..100 {
        let reply = peer.text("test", &format!("{{insert: 't', documents: [{{_id: {id}, text: 'text {id}'}}]}}"));
        assert_eq!(reply, "{n: 1, ok: 1.0}");
    }
}

#[test]
fn memory_leaves_nothing_and_says_so() {
    let directory = temporary_dbpath();
    let dbpath = directory.path().join("data");
    let mut server = start("memory", &dbpath);
    let warning = "keeps nothing on disk: data will not survive the end of this process";
    server.logged(warning);
    insert(&server);
    let mut peer = Peer::connect(server.address());
    assert_eq!(peer.text("test", "{count: 't'}"), "{n: 100, ok: 1.0}");
    // Neither a checkpoint nor `j: true` creates a file.
    assert!(peer.text("admin", "{fsync: 1}").contains("ok: 1.0"));
    let journaled = "{insert: 't', documents: [{_id: 'last'}], writeConcern: {w: 1, j: true}}";
    assert_eq!(peer.text("test", journaled), "{n: 1, ok: 1.0}");
    assert!(!dbpath.exists(), "{} was made", dbpath.display());
    server.stop();
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);

    let server = start("memory", &dbpath);
    let mut peer = Peer::connect(server.address());
    assert_eq!(peer.text("test", "{count: 't'}"), "{n: 0, ok: 1.0}");
    assert_eq!(peer::first_batch(&peer.run("test", "{listCollections: 1}")), [""; 0]);
}

#[test]
fn a_data_file_cut_under_the_map_is_a_clean_death() {
    let dbpath = temporary_dbpath();
    let mut server = start("mmap", dbpath.path());
    insert(&server);
    let mut peer = Peer::connect(server.address());
    assert!(peer.text("admin", "{fsync: 1}").contains("ok: 1.0"));
    let data_file = dbpath.path().join("mmap/data.mdb");
    let file = fs::OpenOptions::new().write(true).open(&data_file).expect("writable");
    file.set_len(0).expect("cut");
    peer.send(&peer::message(
        1000,
        bunko_wire::MessageFlags::NONE,
        peer::command("test", "{find: 't', filter: {_id: 7}}").as_ref(),
    ));
    peer.assert_closed("the server is gone");
    // The process exits by itself: the signal would have left a core dump.
    assert_eq!(server.terminate().code(), Some(BUS_ERROR_STATUS), "{}", server.output_tail());
    // The process has ended already; `kill` reads the rest of its output.
    server.kill();
    server.logged("SIGBUS");
    let output = server.output_tail();
    let last = output.lines().last().unwrap_or_default();
    assert!(last.starts_with("bunko: ") && last.contains("SIGBUS"), "{output}");
    assert!(last.contains(&*data_file.to_string_lossy()), "{output}");
}

#[test]
fn spilled_data_goes_with_a_kill() {
    let dbpath = temporary_dbpath();
    let mut server = start("lsm", dbpath.path());
    let mut peer = Peer::connect(server.address());
    let pad = "spilled ".repeat(100);
    for id in 0..500 {
        peer.run("test", &format!("{{insert: 't', documents: [{{_id: {id}, k: {}, pad: '{pad}'}}]}}", id * 7 % 500));
    }
    let journaled = "{insert: 't', documents: [{_id: 'last', k: 500}], writeConcern: {w: 1, j: true}}";
    assert_eq!(peer.text("test", journaled), "{n: 1, ok: 1.0}");
    let with_little_memory = |server: &Server| {
        let mut peer = Peer::connect(server.address());
        let limits = "{setParameter: 1, internalQueryMaxBlockingSortMemoryUsageBytes: 50000, \
                      internalDocumentSourceGroupMaxMemoryBytes: 50000, \
                      internalDocumentSourceSetWindowFieldsMaxMemoryBytes: 50000}";
        peer.run("admin", limits);
        // The sort has spilled: its runs are merged while the cursor is read. It keeps the field that a later stage
        // reads.
        let sort = "{aggregate: 't', pipeline: [{$sort: {k: -1}}, {$project: {k: 1, padded: {$gt: ['$pad', null]}}}], \
                    cursor: {batchSize: 2}}";
        let first = peer::first_batch(&peer.run("test", sort));
        assert_eq!(first, ["{_id: \"last\", k: 500, padded: false}", "{_id: 357, k: 499, padded: true}"]);
        // The partition is read back while the cursor is read.
        let before = server.open_files_in("scratch");
        let window = "{aggregate: 't', pipeline: [{$setWindowFields: {sortBy: {k: 1}, output: {n: {$sum: 1, \
                      window: {documents: [-1, 200]}}}}}, {$project: {n: 1}}], cursor: {batchSize: 2}}";
        let first = peer::first_batch(&peer.run("test", window));
        assert_eq!(first, ["{_id: 0, n: 201}", "{_id: 143, n: 202}"]);
        assert!(server.open_files_in("scratch") > before, "the partition is not on disk");
        let group =
            "{aggregate: 't', pipeline: [{$group: {_id: '$k', pads: {$push: '$pad'}}}, {$count: 'n'}], cursor: {}}";
        assert_eq!(peer::first_batch(&peer.run("test", group)), ["{n: 501}"]);
        assert!(server.open_files_in("scratch") > 0, "nothing is on disk");
    };
    with_little_memory(&server);
    // The files are unlinked as soon as they are created.
    let scratch = dbpath.path().join("scratch");
    let names = || fs::read_dir(&scratch).expect("a directory").count();
    assert_eq!(names(), 0);
    server.kill();
    assert_eq!(names(), 0);

    // A machine that stops just when a file is created leaves its name.
    fs::write(scratch.join("0"), "left behind").expect("written");
    let server = start("lsm", dbpath.path());
    assert_eq!(names(), 0);
    with_little_memory(&server);
}
