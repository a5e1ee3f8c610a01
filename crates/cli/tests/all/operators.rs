//! The server as its operators see it: signals, its log, limits of the system, and clients that use another protocol.

use crate::peer::{Peer, Running, binary};
use crate::refusal;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_testkit::patience::{PATIENCE, wait_for, wait_for_line, wait_until};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn signal(server: &Server, signal: Signal) {
    kill_process(Pid::from_raw(server.pid() as i32).expect("a process"), signal).expect("it may be signalled");
}

/// A server that logs into a file of its own.
struct Logging {
    server: Server,
    directory: TempDir,
}

impl Logging {
    /// Starts a server whose log is the file `log` of a directory that otherwise contains only its data.
    fn start(flags: &[&str]) -> Self {
        let directory = temporary_dbpath();
        let (log, data) = (directory.path().join("log"), directory.path().join("data"));
        let mut command = Command::new(binary());
        command.args(["serve", "--port", "0", "--log-format", "json", "--dbpath"]).arg(&data);
        command.arg("--log-path").arg(&log).arg("--unix-socket-prefix").arg(directory.path()).args(flags);
        let server = Server::spawn_with_log(command, &log).expect("the server starts");
        Self { server, directory }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn peer(&self) -> Peer {
        Peer::connect(self.server.address())
    }

    /// Waits until the file contains those words; returns the first line with them.
    fn line(&self, words: &str) -> String {
        wait_for_line(&self.log(), words)
    }

    /// Renamed logs.
    fn old_logs(&self) -> Vec<PathBuf> {
        let entries =
            fs::read_dir(self.directory.path()).expect("readable").map(|entry| entry.expect("readable").path());
        let is_old = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."));
        entries.filter(is_old).collect()
    }
}

#[test]
fn sigusr1_renames_the_log_and_goes_on_in_a_new_one() {
    let logging = Logging::start(&[]);
    signal(&logging.server, Signal::USR1);
    wait_until("a log is renamed", || !logging.old_logs().is_empty());
    assert_eq!(logging.peer().text("admin", "{ping: 1}"), "{ok: 1.0}");
    // A new file begins with the process that writes it.
    let pid = format!("\"pid\":{}", logging.server.pid());
    assert!(logging.line("Bunko starting").contains(&pid));
    logging.line("Connection accepted");
    let old = wait_for_line(&logging.old_logs()[0], "Log rotation initiated");
    assert!(old.contains("\"c\":\"CONTROL\""), "{old}");
}

#[test]
fn log_rotate_reopens_what_was_moved_away() {
    let logging = Logging::start(&["--logappend", "--logRotate", "reopen"]);
    let moved = logging.directory.path().join("moved");
    fs::rename(logging.log(), &moved).expect("renamed");
    assert_eq!(logging.peer().text("admin", "{logRotate: 1}"), "{ok: 1.0}");
    logging.line("Options in force");
    assert!(logging.old_logs().is_empty());
    let refused = logging.peer().text("admin", "{logRotate: 'audit'}");
    assert!(refused.contains("code: 4"), "{refused}");
    assert!(
        refusal::message(&binary(), &["--logpath", "x", "--logRotate", "reopen"], refusal::WRONG)
            .contains("reopen needs systemLog.logAppend: true")
    );
}

#[test]
fn a_start_that_fails_says_so_in_the_log() {
    let directory = temporary_dbpath();
    let (log, data) = (directory.path().join("log"), directory.path().join("data"));
    let arguments = [
        "--port",
        "0",
        "--dbpath",
        data.to_str().expect("UTF-8"),
        "--logpath",
        log.to_str().expect("UTF-8"),
        "--pidfilepath",
        "/nowhere/pid",
    ];
    assert!(refusal::message(&binary(), &arguments, refusal::FAILED).contains("/nowhere/pid"));
    let written = fs::read_to_string(log).expect("a log");
    let last = written.lines().last().expect("lines");
    assert!(last.contains("The server ends") && last.contains("/nowhere/pid"), "{last}");
}

#[test]
fn a_rotation_that_fails_says_so_and_the_log_goes_on() {
    let logging = Logging::start(&[]);
    // The new name contains the time in seconds: the second rotation of a second is refused.
    let refused = wait_for(|| {
        let reply = logging.peer().text("admin", "{logRotate: 1}");
        if reply.contains("ok: 0.0") { Ok(reply) } else { Err("no rotation is refused".to_owned()) }
    });
    assert!(refused.contains("Log rotation failed: cannot rename") && refused.contains("it exists"), "{refused}");
    logging.line("Log rotation failed");
    assert_eq!(logging.peer().text("admin", "{ping: 1}"), "{ok: 1.0}");
}

#[test]
fn sighup_is_an_orderly_end_and_sigusr2_is_none() {
    let dbpath = temporary_dbpath();
    let mut server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    signal(&server, Signal::USR2);
    // The server logs to standard error, which is not rotated.
    signal(&server, Signal::USR1);
    server.logged("Log rotation initiated");
    assert_eq!(Peer::connect(server.address()).text("admin", "{ping: 1}"), "{ok: 1.0}");
    signal(&server, Signal::HUP);
    server.logged("checkpoint written, log closed");
    assert!(server.logged("Shutting down").contains("SIGHUP"));
    server.stop();
}

#[test]
fn the_log_begins_with_what_the_process_is() {
    let logging = Logging::start(&["--slowms", "77"]);
    let start = logging.line("Bunko starting");
    for words in [
        format!("\"pid\":{}", logging.server.pid()),
        format!("\"dbPath\":\"{}", logging.directory.path().display()),
        "\"storageEngine\":\"lsm\"".to_owned(),
        "\"port\":0".to_owned(),
    ] {
        assert!(start.contains(&words), "'{words}' is not in {start}");
    }
    let build = logging.line("Build Info");
    assert!(build.contains(env!("CARGO_PKG_VERSION")) && build.contains("gitVersion"), "{build}");
    let options = logging.line("Options in force");
    for words in ["\"slowOpThresholdMs\":77}", "\"syncPeriodSecs\":60", "\"bindIp\":\"127.0.0.1\""] {
        assert!(options.contains(words), "'{words}' is not in {options}");
    }
    assert!(logging.line("Recovered from the log").contains("\"replayedRecords\":0"));
}

#[test]
fn the_log_says_what_a_recovery_replayed_and_cut() {
    let dbpath = temporary_dbpath();
    let mut server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    for id in 0..20 {
        peer.run("test", &format!("{{insert: 't', documents: [{{_id: {id}}}], writeConcern: {{j: true}}}}"));
    }
    server.kill();
    let segment = dbpath.path().join("log/000000000000.segment");
    let used = fs::read(&segment).expect("readable").iter().rposition(|&byte| byte != 0).expect("records") + 1;
    let torn = used as u64 + 64;
    fs::OpenOptions::new().write(true).open(&segment).expect("writable").write_all_at(b"torn", torn).expect("written");
    let server = Server::start(&binary(), dbpath.path(), &["--log-format", "json"]).expect("the server starts");
    let recovered = server.logged("Recovered from the log");
    let records = recovered.split("\"replayedRecords\":").nth(1).and_then(|rest| rest.split(&[',', '}'][..]).next());
    assert!(records.and_then(|records| records.parse().ok()).is_some_and(|records: u32| records >= 20), "{recovered}");
    assert!(recovered.contains("\"durationMillis\":"), "{recovered}");
    let cut = server.logged("torn tail");
    assert!(cut.contains(&format!("\"file\":\"{}\"", segment.display())) && cut.contains("\"offset\":"), "{cut}");
}

#[test]
fn clients_and_slow_operations_are_logged() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--log-format", "json"]).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    let hello =
        "{hello: 1, client: {application: {name: 'till'}, driver: {name: 'd', version: '1'}, os: {type: 'Linux'}}}";
    peer.run("admin", hello);
    let client = server.logged("client metadata");
    assert!(client.contains(r#""doc":{"application":{"name":"till"},"driver":{"#), "{client}");
    let profile = peer.text("admin", "{profile: -1}");
    assert_eq!(profile, "{was: 0, slowms: 100, sampleRate: 1.0, ok: 1.0}");
    peer.run("admin", "{profile: 0, slowms: 0}");
    let large = "x".repeat(5000);
    peer.run("shop", &format!("{{insert: 'things', documents: [{{_id: 1, secret: '{large}'}}, {{_id: 2}}]}}"));
    peer.run("shop", "{find: 'things', filter: {n: {$gt: 5}}}");
    let insert = server.logged("\"command\":{\"insert\":\"things\"");
    assert!(insert.contains("\"ns\":\"shop.things\"") && insert.contains("\"commandBytes\":"), "{insert}");
    assert!(!insert.contains("xxx") && insert.len() < 2000, "{insert}");
    let find = server.logged("\"command\":{\"find\":\"things\"");
    for words in [
        "\"msg\":\"Slow query\"",
        "\"id\":51803",
        "\"appName\":\"till\"",
        r#""filter":{"n":{"$gt":5}}"#,
        "\"docsExamined\":2",
        "\"keysExamined\":0",
        "\"durationMillis\":",
    ] {
        assert!(find.contains(words), "'{words}' is not in {find}");
    }
}

#[test]
fn a_server_that_is_open_to_all_warns() {
    let logging = Logging::start(&["--bind_ip_all"]);
    let warning = logging.line("Access control is not enabled");
    assert!(warning.contains("\"tags\":[\"startupWarnings\"]") && warning.contains("\"s\":\"W\""), "{warning}");
    let warnings = logging.peer().text("admin", "{getLog: 'startupWarnings'}");
    assert!(warnings.contains("Access control is not enabled"), "{warnings}");
    // The log is a file, so the terminal shows the warning too.
    logging.server.logged("Access control is not enabled");
    for arguments in [&[][..], &["--bind_ip_all", "--insecure"], &["--bind_ip_all", "--auth"]] {
        let closed = Logging::start(arguments).peer().text("admin", "{getLog: 'startupWarnings'}");
        assert!(!closed.contains("Access control is not enabled"), "{closed}");
    }
}

/// A server whose limit of open files is `files`.
fn limited(files: u32, dbpath: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")]).arg(binary());
    command.args(["serve", "--port", "0", "--no-unix-socket", "--dbpath"]).arg(dbpath);
    command
}

#[test]
fn too_few_files_are_an_error_and_no_panic() {
    for files in [8, 16, 24, 40, 63] {
        let dbpath = temporary_dbpath();
        let output = limited(files, dbpath.path()).stdout(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{files}: {said}");
        assert!(!said.contains("panicked"), "{files}: {said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with("bunko: ") && last.contains("open files") && last.contains("ulimit -n"), "{said}");
    }
}

#[test]
fn the_least_files_do_for_a_server_that_many_connect_to() {
    let dbpath = temporary_dbpath();
    let mut server = Server::spawn(limited(64, dbpath.path())).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    assert!(peer.text("admin", "{getLog: 'startupWarnings'}").contains("The limit of open files is low"));
    let mut others: Vec<_> = (0..100).map(|_| TcpStream::connect(server.address()).expect("accepted")).collect();
    server.logged("too many open connections");
    for id in 0..50 {
        let insert = format!("{{insert: 't{id}', documents: [{{_id: 1}}], writeConcern: {{j: true}}}}");
        assert_eq!(peer.text("test", &insert), "{n: 1, ok: 1.0}");
    }
    others.clear();
    assert!(peer.text("admin", "{fsync: 1}").contains("ok: 1.0"));
    server.stop();
}

#[test]
fn tls_is_recognised() {
    let running = Running::start();
    let mut stream = TcpStream::connect(running.address()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    // The beginning of a ClientHello of TLS 1.3: record, message, version, some of the random bytes.
    let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 0x5a, 0x13, 0xf0, 0x77, 0x21, 0x90, 0x4c];
    stream.write_all(&hello).expect("sent");
    let mut rest = Vec::new();
    // The connection is closed by an end or, with unread bytes, by a reset.
    let _ = stream.read_to_end(&mut rest);
    running.assert_logged("TLS is disabled (net.tls.mode)");
    running.assert_serves();
}

#[test]
fn http_is_answered() {
    let running = Running::start();
    let mut stream = TcpStream::connect(running.address()).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost:27017\r\nAccept: */*\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.0 200 OK"), "{head}");
    assert_eq!(body, "It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    running.assert_serves();
}

/// A value in a reply, by its dotted path.
fn field(reply: &DocumentBuf, path: &str) -> String {
    let value = path.split('.').fold(ValueRef::Document(reply.as_ref()), |value, name| {
        value.as_document().and_then(|document| document.get(name)).unwrap_or(ValueRef::Null)
    });
    shell::print(value)
}

#[test]
fn options_are_shown_as_they_were_given() {
    let logging = Logging::start(&["--slowms", "5"]);
    let options = logging.peer().run("admin", "{getCmdLineOpts: 1}");
    assert_eq!(field(&options, "parsed.operationProfiling.slowOpThresholdMs"), "5");
}

fn number(reply: &DocumentBuf, path: &str) -> f64 {
    let text = field(reply, path);
    let digits = text.trim_start_matches("NumberLong(").trim_end_matches(')');
    digits.parse().unwrap_or_else(|_| panic!("{path} is {text}: {reply:?}"))
}

#[test]
fn sizes_are_right_before_the_first_checkpoint() {
    const DOCUMENTS_BYTES: f64 = 1e6;
    for engine in ["lsm", "mmap", "memory"] {
        let dbpath = temporary_dbpath();
        let flags = ["--storage-engine", engine, "--sync-delay", "3600"];
        let server = Server::start(&binary(), dbpath.path(), &flags).expect("the server starts");
        let mut peer = Peer::connect(server.address());
        peer.run("shop", "{createIndexes: 'things', indexes: [{key: {name: 1}, name: 'name_1'}]}");
        let filler = "x".repeat(1000);
        for batch in 0..10 {
            let document = |id| format!("{{_id: {id}, name: 'a name of a thing {id}', filler: '{filler}'}}");
            let documents: Vec<_> = (batch * 100..batch * 100 + 100).map(document).collect();
            peer.run("shop", &format!("{{insert: 'things', documents: [{}]}}", documents.join(", ")));
        }
        let mut sizes = || {
            let collection = peer.run("shop", "{collStats: 'things'}");
            let database = peer.run("shop", "{dbStats: 1}");
            let list = peer.run("admin", "{listDatabases: 1, filter: {name: 'shop'}}");
            let storage = number(&collection, "storageSize");
            let indexes = number(&collection, "totalIndexSize");
            assert_eq!(number(&database, "storageSize"), storage);
            assert_eq!(number(&database, "indexSize"), indexes);
            assert_eq!(number(&list, "totalSize"), storage + indexes);
            let by_index = number(&collection, "indexSizes.name_1");
            assert!(by_index >= 10_000.0, "{engine}: {collection:?}");
            peer.run("admin", "{fsync: 1}");
            (storage, indexes)
        };
        let (before, indexes_before) = sizes();
        let (after, indexes_after) = sizes();
        assert!((DOCUMENTS_BYTES..2.0 * DOCUMENTS_BYTES).contains(&before), "{engine}: {before}");
        assert!((DOCUMENTS_BYTES..2.0 * DOCUMENTS_BYTES).contains(&after), "{engine}: {after}");
        assert!(
            indexes_before > indexes_after / 8.0 && indexes_before < indexes_after * 8.0,
            "{engine}: {indexes_before}, then {indexes_after}"
        );
    }
}

#[test]
fn monitors_find_what_they_read() {
    let running = Running::start();
    let mut peer = running.peer();
    peer.run("peer", "{find: 'kept', filter: {nothing: 1}}");
    let diagnostic = peer.run("admin", "{getDiagnosticData: 1}");
    let status = peer.run("admin", "{serverStatus: 1}");
    // Fields that mongostat reads where there is no WiredTiger, and fields for which Percona's exporter has panels.
    let paths = [
        "asserts.user",
        "backgroundFlushing.flushes",
        "connections.available",
        "connections.current",
        "connections.totalCreated",
        "extra_info.page_faults",
        "extra_info.system_time_us",
        "extra_info.user_time_us",
        "globalLock.activeClients.readers",
        "globalLock.activeClients.writers",
        "globalLock.currentQueue.readers",
        "globalLock.currentQueue.writers",
        "globalLock.totalTime",
        "mem.resident",
        "mem.virtual",
        "metrics.cursor.open.total",
        "metrics.cursor.timedOut",
        "metrics.document.inserted",
        "metrics.document.returned",
        "metrics.queryExecutor.scanned",
        "metrics.queryExecutor.scannedObjects",
        "network.bytesIn",
        "network.bytesOut",
        "network.numRequests",
        "opcounters.command",
        "opcounters.insert",
        "opcounters.query",
        "uptimeMillis",
    ];
    for path in paths {
        assert!(number(&status, path) >= 0.0);
        assert!(number(&diagnostic, &format!("data.serverStatus.{path}")) >= 0.0);
    }
    assert_eq!(field(&status, "storageEngine.name"), "\"lsm\"");
    assert!(number(&status, "metrics.queryExecutor.scannedObjects") >= 1.0);
    assert!(number(&diagnostic, "data.systemMetrics.cpu.idle_ms") > 0.0);
    assert!(number(&diagnostic, "data.systemMetrics.memory.MemTotal_kb") > 0.0);
}

#[test]
fn settings_that_only_mongod_has_are_named() {
    let refused = |flags: &[&str]| refusal::output(&binary(), flags, refusal::WRONG);
    for (flags, words) in [
        (&["--fork"][..], "let systemd or a container's runtime start it in the background"),
        (&["--keyFile", "/nowhere/key"], "security.keyFile: /nowhere/key: No such file"),
        (&["--smallfiles"], "--smallfiles is not supported yet: MongoDB has removed it"),
        (&["--oplogMinRetentionHours", "24"], "the oplog is kept by its size: replication.oplogSizeMB"),
        (&["--setParameter", "watchdogPeriodSeconds=60"], "setParameter.watchdogPeriodSeconds is not supported yet"),
        (&["--networkMessageCompressors", "lz4"], "'lz4' is none of snappy, zstd, zlib and disabled"),
        (&["--port", "0", "--shardsvr"], "--shardsvr is not supported yet: there are no shards"),
        (&["--tlsMode", "requireTLS"], "requireTLS needs net.tls.certificateKeyFile"),
        (&["--tlsClusterFile", "k"], "--tlsClusterFile is not supported yet"),
        (&["--tlsAllowInvalidCertificates"], "a certificate that a client shows is always verified"),
        (&["--sslMode", "requireSSL", "--sslPEMKeyFile", "x.pem"], "--sslMode is not supported yet"),
        (&["--nonsense"], "--nonsense"),
    ] {
        let said = refused(flags);
        assert!(said.contains(words), "'{words}' is not in: {said}");
    }
    assert!(!refused(&["--nonsense"]).contains("not supported yet"));
    // A running server checks the values of its parameters itself.
    for (parameter, words) in [
        ("authenticationMechanisms=PLAIN", "authenticationMechanisms: 'PLAIN'"),
        ("cursorTimeoutMillis=long", "cursorTimeoutMillis: 'long' is not a whole number"),
        ("diagnosticDataCollectionEnabled=true", "diagnosticDataCollectionEnabled: true is not supported yet"),
    ] {
        let dbpath = temporary_dbpath();
        let path = dbpath.path().to_str().expect("UTF-8");
        let flags = ["--port", "0", "--no-unix-socket", "--dbpath", path, "--setParameter", parameter];
        let said = refusal::message(&binary(), &flags, refusal::FAILED);
        assert!(said.contains(words), "'{words}' is not in: {said}");
    }
    let running = Running::start();
    let mut peer = running.peer();
    for (command, code, words) in [
        ("{splitVector: 1}", "115", "the command 'splitVector' is not supported yet"),
        ("{createUsers: 'u'}", "59", "no such command: 'createUsers'"),
        ("{aggregate: 'kept', pipeline: [{$searchBeta: {}}], cursor: {}}", "115", "$searchBeta is not supported yet"),
        ("{aggregate: 'kept', pipeline: [{$vectorSought: {}}], cursor: {}}", "40324", "'$vectorSought'"),
    ] {
        let reply = peer.text("peer", command);
        assert!(reply.contains(&format!("code: {code},")) && reply.contains(words), "{command}: {reply}");
    }
}
