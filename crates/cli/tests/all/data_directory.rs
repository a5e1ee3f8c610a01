//! Starts that must be refused with a reason, without touching the refused files; and orderly shutdowns.

use crate::peer::{self, Peer, binary};
use crate::refusal;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_testkit::directory::files_below;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

fn refused(arguments: &[&str]) -> String {
    refusal::message(&binary(), arguments, refusal::FAILED)
}

fn refused_directory(dbpath: &Path) -> String {
    refused(&["--port", "0", "--dbpath", dbpath.to_str().expect("UTF-8")])
}

fn start(dbpath: &Path) -> Server {
    Server::start(&binary(), dbpath, &[]).expect("the server starts")
}

/// Contents of all files except the lock file, by path.
fn files(dbpath: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files_below(dbpath).into_iter().filter(|path| !path.ends_with("bunko.lock"));
    files.map(|path| (path.clone(), fs::read(&path).expect("readable"))).collect()
}

/// Checks that the start is refused with those words, and that no file changes.
fn assert_refused_untouched(dbpath: &Path, words: &[&str]) {
    let before = files(dbpath);
    let message = refused_directory(dbpath);
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
    let after = files(dbpath);
    assert!(before.keys().eq(after.keys()), "{:?} became {:?}", before.keys(), after.keys());
    for (path, bytes) in &before {
        assert!(after[path] == *bytes, "{} was changed by a start that was refused", path.display());
    }
}

fn insert(server: &Server, ids: std::ops::Range<i32>) {
    let mut peer = Peer::connect(server.address());
    for id in ids {
        let reply = peer.text(
            "test",
            &format!("{{insert: 't', documents: [{{_id: {id}, mark: 'document {id};'}}], writeConcern: {{j: true}}}}"),
        );
        assert_eq!(reply, "{n: 1, ok: 1.0}");
    }
}

fn count(server: &Server) -> i32 {
    let reply = Peer::connect(server.address()).run("test", "{aggregate: 't', pipeline: [{$count: 'n'}], cursor: {}}");
    let batch = peer::first_batch(&reply).concat();
    let found = if batch.is_empty() { return 0 } else { shell::parse_document(&batch).expect("shell syntax") };
    let Some(ValueRef::Int32(n)) = found.as_ref().get("n") else { panic!("{batch}") };
    n
}

fn segment(dbpath: &Path, number: u32) -> PathBuf {
    dbpath.join(format!("log/{number:012}.segment"))
}

/// Offset of a document of [`insert`] in a segment.
fn offset_of(segment: &Path, id: i32) -> u64 {
    let mark = format!("document {id};");
    let bytes = fs::read(segment).expect("readable");
    bytes.windows(mark.len()).position(|window| window == mark.as_bytes()).expect("it was written") as u64
}

/// Flips one bit.
fn flip(path: &Path, offset: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).expect("writable");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("within the file");
    file.write_all_at(&[byte[0] ^ 1], offset).expect("written");
}

#[test]
fn a_second_server_is_refused_and_the_first_goes_on() {
    let dbpath = temporary_dbpath();
    let server = start(dbpath.path());
    insert(&server, 0..1);
    let message = refused_directory(dbpath.path());
    let lock = dbpath.path().join("bunko.lock");
    let words = format!("{}: another process has this data directory open", dbpath.path().display());
    assert!(message.contains(&words), "{message}");
    assert_eq!(fs::read_to_string(&lock).expect("readable").trim(), server.pid().to_string());
    fs::remove_file(lock).expect("removed");
    let message = refused_directory(dbpath.path());
    assert!(message.contains(&words), "{message}");
    insert(&server, 1..2);
    assert_eq!(count(&server), 2);
}

#[test]
fn each_start_is_noted() {
    let dbpath = temporary_dbpath();
    let mut pids = Vec::new();
    for _ in 0..2 {
        let server = Server::start(&binary(), dbpath.path(), &["--oplogSize", "64"]).expect("the server starts");
        pids.push(server.pid());
        let mut peer = Peer::connect(server.address());
        let found = peer.text("local", "{find: 'startup_log'}");
        let options = peer.text("local", "{listCollections: 1, filter: {name: 'startup_log'}}");
        assert!(options.contains("capped: true, size: 10485760"), "{options}");
        for pid in &pids {
            assert!(found.contains(&format!("pid: NumberLong({pid})")), "{found}");
        }
        for part in ["hostname: ", "startTime: ISODate(", "startTimeLocal: ", "cmdLine: {", "buildinfo: {version: "] {
            assert_eq!(found.matches(part).count(), pids.len(), "{part} in {found}");
        }
        let versions = peer.text("admin", "{find: 'system.version'}");
        assert!(versions.contains("[{_id: \"featureCompatibilityVersion\", version: \"8.2\"}]"), "{versions}");
        let oplog = peer.text("local", "{find: 'oplog.rs'}");
        assert!(!oplog.contains("system.version") && !oplog.contains("startup_log"), "{oplog}");
    }
}

#[test]
fn directories_above_the_data_directory_are_not_made() {
    let parent = temporary_dbpath();
    let missing = parent.path().join("a/b");
    let flags = ["--port", "0", "--dbpath", missing.to_str().expect("UTF-8")];
    let message = refusal::message(&binary(), &flags, 100);
    assert!(message.contains(&format!("data directory {} not found", missing.display())), "{message}");
    assert_eq!(files(parent.path()), BTreeMap::new());
    let made = parent.path().join("a");
    drop(start(&made));
    assert!(made.is_dir());
}

#[test]
fn other_users_of_the_machine_read_nothing() {
    let modes = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
    for engine in ["lsm", "mmap"] {
        let parent = temporary_dbpath();
        let (dbpath, log) = (parent.path().join("data"), parent.path().join("a.log"));
        let mut command = std::process::Command::new(binary());
        command.args(["serve", "--port", "0", "--no-unix-socket", "--storage-engine", engine, "--dbpath"]).arg(&dbpath);
        command.arg("--logpath").arg(&log);
        let mut server = Server::spawn_with_log(command, &log).expect("the server starts");
        insert(&server, 0..10);
        server.stop();
        assert_eq!(modes(&dbpath), 0o700, "{engine}");
        for file in files_below(&dbpath).into_iter().chain([log]) {
            assert_eq!(modes(&file) & 0o077, 0, "{}", file.display());
        }
    }
}

#[test]
fn a_directory_that_other_users_may_read_is_warned_of() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    server.stop();
    let manifest = dbpath.path().join("manifest.bson");
    for path in [dbpath.path(), &manifest] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("the mode is set");
    }
    let server = start(dbpath.path());
    let log = Peer::connect(server.address()).run("admin", "{getLog: 'startupWarnings'}");
    let words = "Other users of this machine may read or change the data";
    assert!(format!("{log:?}").contains(words), "{log:?}");
}

/// A pipe holds 64 KiB, and each connection logs at least two lines of 100 bytes.
#[test]
fn a_log_that_is_not_read_stops_no_client_and_is_told_of_later() {
    const CONNECTIONS: usize = 5_000;
    let dbpath = temporary_dbpath();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = std::process::Command::new(binary());
    command.args(["serve", "--port", "0", "--no-unix-socket", "--dbpath"]).arg(dbpath.path());
    let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().expect("it can be run");
    drop(command);
    let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
    let waiting = lines.find(|line| line.contains("Waiting for connections")).expect("it listens");
    let address = waiting.split("mongodb://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
    let address: SocketAddr = address.parse().expect("an address");
    for _ in 0..CONNECTIONS {
        assert_eq!(Peer::connect(address).text("admin", "{ping: 1}"), "{ok: 1.0}");
    }
    // Once the log is read again, it reports how many lines are missing.
    let (told, is_told) = mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        for line in lines {
            if line.contains("Log lines were dropped") {
                let _ = told.send(());
            }
            text.push_str(&line);
        }
        text
    });
    while is_told.recv_timeout(Duration::from_millis(20)) == Err(mpsc::RecvTimeoutError::Timeout) {
        assert_eq!(Peer::connect(address).text("admin", "{ping: 1}"), "{ok: 1.0}");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be told to stop");
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success(), "{status}");
    let text = reading.join().expect("no panic");
    assert!(text.contains("Shutting down: checkpoint written, log closed"), "the last line is missing");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = temporary_dbpath();
    let file = directory.path().join("file");
    fs::write(&file, "no directory").expect("written");
    let below = file.join("data");
    let message = refused_directory(&below);
    assert!(message.contains(below.to_str().expect("UTF-8")) && message.contains("Not a directory"), "{message}");
    assert_eq!(fs::read_to_string(&file).expect("readable"), "no directory");
}

#[test]
fn a_newer_format_is_refused() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    insert(&server, 0..10);
    server.stop();
    let newer = DocumentBuf::new().with("formatVersion", 99_i64).with("unheard", "of").into_bytes();
    let manifest = dbpath.path().join("manifest.bson");
    fs::write(&manifest, [&crc32c::crc32c(&newer).to_le_bytes()[..], &newer].concat()).expect("written");
    let words = format!("{}: data directory has format version 99, this program reads ", manifest.display());
    assert_refused_untouched(dbpath.path(), &[&words, "a later version of Bunko wrote it: start that version"]);
    let before = files(dbpath.path());
    let (is_ready, told) = checked(dbpath.path());
    assert!(!is_ready && told.contains("format 99") && told.contains("start that version"), "{told}");
    assert_eq!(files(dbpath.path()), before);
}

/// Whether a start would succeed, and the output of `bunko upgrade --check`.
fn checked(dbpath: &Path) -> (bool, String) {
    let mut command = std::process::Command::new(binary());
    let output = command.args(["upgrade", "--check", "--dbpath"]).arg(dbpath).output().expect("runs");
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn a_check_before_an_upgrade_says_what_a_start_would_do() {
    let dbpath = temporary_dbpath();
    assert!(!checked(&dbpath.path().join("missing")).0);
    assert!(!checked(dbpath.path()).0, "it is empty");
    let mut server = start(dbpath.path());
    insert(&server, 0..10);
    let (is_ready, told) = checked(dbpath.path());
    assert!(is_ready && told.contains("lsm") && told.contains("leave the format as it is"), "{told}");
    server.stop();
    // Files of the repository lack the zeros at their ends.
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/data_directories/5/mmap");
    let lengths = fs::read_to_string(old.join("lengths.txt")).expect("readable");
    let length = lengths.lines().find_map(|line| line.strip_prefix("manifest.bson ")).expect("a length");
    let mut manifest = fs::read(old.join("manifest.bson")).expect("readable");
    manifest.resize(length.parse().expect("a number"), 0);
    let copy = temporary_dbpath();
    fs::write(copy.path().join("manifest.bson"), manifest).expect("written");
    let (is_ready, told) = checked(copy.path());
    assert!(
        is_ready && told.contains("format 5") && told.contains("mmap") && told.contains("make it format"),
        "{told}"
    );
}

#[test]
fn a_damaged_manifest_is_refused_and_named() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    insert(&server, 0..10);
    server.stop();
    let manifest = dbpath.path().join("manifest.bson");
    let whole = fs::read(&manifest).expect("readable");
    let name = format!("{}: corrupt", manifest.display());
    for length in [0, 3, 4, whole.len() - 1] {
        fs::write(&manifest, &whole[..length]).expect("written");
        assert!(refused_directory(dbpath.path()).contains(&name), "{length} bytes of it");
    }
    fs::write(&manifest, &whole).expect("written");
    flip(&manifest, whole.len() as u64 / 2);
    assert_refused_untouched(dbpath.path(), &[&name]);
    // Only the manifest was wrong.
    fs::write(&manifest, &whole).expect("written");
    assert_eq!(count(&start(dbpath.path())), 10);
}

#[test]
fn a_flipped_byte_in_the_log_is_refused_and_named() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    insert(&server, 0..50);
    // Each of these inserts waits for its sync, and the later records prove that the first fifty documents are on disk.
    insert(&server, 50..100);
    server.kill();
    let segment = segment(dbpath.path(), 0);
    let damaged = offset_of(&segment, 20);
    flip(&segment, damaged);
    let before = files(dbpath.path());
    let message = refused_directory(dbpath.path());
    assert!(message.contains(&format!("{}: corrupt at offset ", segment.display())), "{message}");
    let offset = message.split("at offset ").nth(1).and_then(|rest| rest.split(':').next()).expect("an offset");
    let offset: u64 = offset.parse().expect("a number");
    assert!((damaged - 200..=damaged).contains(&offset), "{offset} is not the record around {damaged}");
    assert!(before == files(dbpath.path()), "a start that was refused changed a file");
    flip(&segment, damaged);
    assert_eq!(count(&start(dbpath.path())), 100);
}

#[test]
fn a_flipped_byte_at_the_end_of_a_full_segment_is_refused() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    // Large enough to fill the first segment and reach into the second.
    let mut peer = Peer::connect(server.address());
    let pad = "x".repeat(9_000_000);
    for id in 0..8 {
        let documents: ArrayBuf = [&DocumentBuf::new().with("_id", id).with("pad", &*pad)].into_iter().collect();
        let body = DocumentBuf::new().with("insert", "t").with("documents", &documents).with("$db", "test");
        let body = body.with("writeConcern", &DocumentBuf::new().with("j", true));
        assert_eq!(peer::code(peer.run_body(body.as_ref()).as_ref()), 0);
    }
    insert(&server, 8..9);
    server.kill();
    let segment = segment(dbpath.path(), 0);
    let bytes = fs::read(&segment).expect("readable");
    // In the last document before the seal: only the next segment proves that it was durable.
    let damaged = bytes.iter().rposition(|&byte| byte == b'x').expect("padding") as u64;
    flip(&segment, damaged);
    let words = format!("{}: corrupt at offset ", segment.display());
    assert_refused_untouched(dbpath.path(), &[&words, "proves that one was durable"]);
    flip(&segment, damaged);
    assert_eq!(count(&start(dbpath.path())), 9);
}

#[test]
fn a_torn_tail_is_cut() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    insert(&server, 0..50);
    server.kill();
    let segment = segment(dbpath.path(), 0);
    let torn = offset_of(&segment, 49);
    fs::OpenOptions::new().write(true).open(&segment).expect("writable").set_len(torn).expect("cut");
    let mut server = start(dbpath.path());
    assert_eq!(count(&server), 49);
    // The log continues where it was cut.
    insert(&server, 49..60);
    server.kill();
    assert_eq!(count(&start(dbpath.path())), 60);
}

#[test]
fn a_log_shorter_than_the_checkpoint_is_refused() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    insert(&server, 0..50);
    server.stop();
    let segment = segment(dbpath.path(), 0);
    let whole = fs::read(&segment).expect("readable");
    let cut = offset_of(&segment, 25) as usize;
    fs::write(&segment, &whole[..cut]).expect("written");
    let name = segment.display().to_string();
    assert_refused_untouched(dbpath.path(), &[&name, "before the last checkpoint"]);
    fs::write(&segment, [&whole[..cut], &vec![0; whole.len() - cut]].concat()).expect("written");
    assert_refused_untouched(dbpath.path(), &[&name, "before the last checkpoint"]);
    fs::remove_file(&segment).expect("removed");
    assert_refused_untouched(dbpath.path(), &[&name, "missing"]);
    fs::write(&segment, &whole).expect("written");
    assert_eq!(count(&start(dbpath.path())), 50);
}

#[test]
fn a_port_in_use_is_named() {
    let (one, other) = (temporary_dbpath(), temporary_dbpath());
    let server = start(one.path());
    let port = server.address().port().to_string();
    let message = refused(&["--port", &port, "--dbpath", other.path().to_str().expect("UTF-8")]);
    let expected = format!("cannot bind {}: Address already in use", server.address());
    assert!(message.contains(&expected), "{message}");
    insert(&server, 0..1);
    // The directory that was opened before the port was found in use is unharmed.
    assert_eq!(count(&start(other.path())), 0);
}

#[test]
fn sigterm_ends_in_order_and_the_log_says_so() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path());
    let uri = format!("mongodb://{}/", server.address());
    server.logged(&format!("\"msg\":\"Waiting for connections\",\"attr\":{{\"uri\":\"{uri}\""));
    insert(&server, 0..10);
    // Neither an idle connection nor half a request delays the shutdown.
    let _idle = Peer::connect(server.address());
    let mut half = Peer::connect(server.address());
    half.send(&[100, 0, 0]);
    server.stop();
    server.logged("\"reason\":\"SIGTERM\"");
    server.logged("log closed");
    let log = server.output_tail();
    assert!(log.trim_end().ends_with("\"msg\":\"Shutting down: checkpoint written, log closed\"}"), "{log}");
    half.assert_closed("the server is gone");
    let server = start(dbpath.path());
    assert_eq!(count(&server), 10);
}
