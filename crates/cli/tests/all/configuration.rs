//! Configuration files and flags, and the resulting servers; the Unix domain socket.

use crate::peer::{Peer, binary};
use crate::refusal::{FAILED, WRONG, message, output};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{Connection, Uri};
use bunko_testkit::patience::wait_for_line;
use bunko_testkit::process::{Server, fixed_port, temporary_dbpath};
use bunko_testkit::shell;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WIRED_TIGER: &str = include_str!("../configuration/wiredTiger.yaml");
const IN_MEMORY: &str = include_str!("../configuration/inMemory.yaml");
const MMAP_V1: &str = include_str!("../configuration/mmapv1.yaml");
const PACKAGED: &str = include_str!("../configuration/packaged.yaml");

/// A directory with a configuration file, and room for the data.
struct Configured {
    directory: TempDir,
}

impl Configured {
    /// Turns the paths in the file into paths within the directory.
    fn new(text: &str, paths: &[&str]) -> Self {
        let directory = temporary_dbpath();
        let moved = paths.iter().fold(text.to_owned(), |text, path| {
            let name = Path::new(path).file_name().expect("a path").to_string_lossy();
            text.replace(path, &directory.path().join(&*name).to_string_lossy())
        });
        fs::write(directory.path().join("mongod.conf"), moved).expect("written");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn config(&self) -> String {
        self.path("mongod.conf").to_string_lossy().into_owned()
    }

    /// The reason for which the file is refused.
    fn refused(&self, status: i32) -> String {
        message(&binary(), &["--port", "0", "--config", &self.config()], status)
    }
}

fn print_config(arguments: &[&str]) -> String {
    let output = Command::new(binary()).args(["serve", "--print-config"]).args(arguments).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{}: {error}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Starts a server with a file, and only those flags that separate servers from each other.
fn start(configured: &Configured, flags: &[&str]) -> Server {
    let (config, sockets) = (configured.config(), configured.directory.path().to_string_lossy().into_owned());
    let own = ["--config", &config, "--port", "0", "--unix-socket-prefix", &sockets];
    Server::run(&binary(), &[&own, flags].concat()).expect("the server starts")
}

/// Checks that the engine stores documents and returns them.
fn assert_works(server: &Server) {
    let mut peer = Peer::connect(server.address());
    assert_eq!(peer.text("test", "{insert: 't', documents: [{_id: 1}, {_id: 2}]}"), "{n: 2, ok: 1.0}");
    assert_eq!(peer.text("test", "{count: 't'}"), "{n: 2, ok: 1.0}");
}

fn count(server: &Server) -> String {
    Peer::connect(server.address()).text("test", "{count: 't'}")
}

fn flag(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn the_wired_tiger_file_of_e3_starts_lsm() {
    let configured = Configured::new(WIRED_TIGER, &["/data/wiredTiger"]);
    let mut server = start(&configured, &[]);
    server.logged("storage.engine wiredTiger: the engine lsm plays this role");
    assert_works(&server);
    let status = Peer::connect(server.address()).text("admin", "{serverStatus: 1}");
    assert!(status.contains("defaultBlockCompressor: \"snappy\""), "{status}");
    assert!(status.contains("maximumBytes: NumberLong(10737418240)"), "{status}");
    server.stop();
    assert!(configured.path("wiredTiger/manifest.bson").exists());
    assert_eq!(count(&start(&configured, &["--storage-engine", "lsm"])), "{n: 2, ok: 1.0}");
}

#[test]
fn the_in_memory_file_of_e3_starts_memory() {
    let configured = Configured::new(IN_MEMORY, &["/data/inMemory"]);
    let mut server = start(&configured, &[]);
    for words in [
        "storage.engine inMemory: the engine memory plays this role",
        "data will not survive the end of this process",
        "\"limitBytes\":10737418240",
        "Settings that have no effect on the engine memory",
        "\"settings\":\"storage.dbPath, storage.journal.enabled\"",
    ] {
        server.logged(words);
    }
    assert_works(&server);
    server.stop();
    assert!(!configured.path("inMemory").exists(), "nothing is on disk");
    assert_eq!(count(&start(&configured, &[])), "{n: 0, ok: 1.0}");
}

#[test]
fn the_cap_of_the_engine_memory_holds_and_the_server_lives() {
    let dbpath = temporary_dbpath();
    let flags = ["--storage-engine", "memory", "--in-memory-size-gb", "0.25"];
    let server = Server::start(&binary(), dbpath.path(), &flags).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    let pad = "x".repeat(15_000_000);
    let mut insert = |id: i32| {
        let document = DocumentBuf::new().with("_id", id).with("pad", &*pad);
        let documents: ArrayBuf = [&document].into_iter().collect();
        peer.run_body(DocumentBuf::new().with("insert", "t").with("documents", &documents).with("$db", "test").as_ref())
    };
    // 0.25 GB are 268 MB.
    let refused = (0..18).find_map(|id| {
        let reply = shell::print(ValueRef::Document(insert(id).as_ref()));
        (reply != "{n: 1, ok: 1.0}").then_some((id, reply))
    });
    let (taken, refusal) = refused.expect("there is a cap");
    assert!(taken >= 15, "refused at {taken}");
    assert!(refusal.contains("inMemorySizeGB") && refusal.contains("268435456"), "{refusal}");
    assert_eq!(count(&server), format!("{{n: {taken}, ok: 1.0}}"));
}

#[test]
fn the_mmap_file_of_e3_starts_mmap() {
    let configured = Configured::new(MMAP_V1, &["/data/mmapv1"]);
    let mut server = start(&configured, &[]);
    server.logged("storage.engine mmapv1: the engine mmap plays this role");
    assert_works(&server);
    server.stop();
    assert_eq!(count(&start(&configured, &["--storageEngine=mmap"])), "{n: 2, ok: 1.0}");
}

#[test]
fn the_file_of_a_package_starts_it() {
    let paths = ["/var/lib/mongodb", "/var/log/mongodb/mongod.log", "/var/run/mongodb/mongod.pid"];
    let configured = Configured::new(PACKAGED, &paths);
    let (log, pid, config) = (configured.path("mongod.log"), configured.path("mongod.pid"), configured.config());
    fs::write(&log, "before\n").expect("written");
    let directory = flag(configured.directory.path());
    let mut child = Command::new(binary())
        .args(["serve", "--config", &config, "--port", "0", "--unix-socket-prefix", directory])
        .spawn()
        .expect("it runs");
    wait_for_line(&log, "Waiting for connections");
    assert_eq!(fs::read_to_string(&pid).expect("readable"), format!("{}\n", child.id()));
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("it runs");
    assert!(child.wait().expect("a child").success());
    assert!(fs::read_to_string(&log).expect("readable").starts_with("before\n"));
    assert!(!pid.exists() && configured.path("mongodb/manifest.bson").exists());
}

#[test]
fn flags_go_before_the_file() {
    let text = "net:\n  port: 1\n  maxIncomingConnections: 50\nstorage:\n  dbPath: /never\n  syncPeriodSecs: 30\n";
    let configured = Configured::new(text, &[]);
    let dbpath = configured.path("db");
    let server = start(&configured, &["--dbpath", flag(&dbpath), "--maxConns=60", "--cache-size-gb", "0.5"]);
    let (config, directory) = (configured.config(), flag(configured.directory.path()));
    let expected = format!(
        "{{config: \"{config}\", net: {{maxIncomingConnections: 60, port: 0, unixDomainSocket: {{pathPrefix: \
         \"{directory}\"}}}}, storage: {{dbPath: \"{}\", syncPeriodSecs: 30.0, wiredTiger: {{engineConfig: \
         {{cacheSizeGB: 0.5}}}}}}}}",
        dbpath.display()
    );
    let mut peer = Peer::connect(server.address());
    let reply = peer.run("admin", "{getCmdLineOpts: 1}");
    assert_eq!(shell::print(reply.as_ref().get("parsed").expect("parsed")), expected);
    let status = peer.run("admin", "{serverStatus: 1}");
    let connections = status.as_ref().get("connections").and_then(ValueRef::as_document).expect("connections");
    assert_eq!(connections.get("available").map(shell::print).as_deref(), Some("59"));
}

#[test]
fn unknown_wrong_and_contradictory_settings_are_named_with_their_line() {
    for (text, words) in [
        ("net:\n  port: 27017\n  prot: 27018\n", ["unknown key net.prot", "line 3"]),
        ("storage:\n  dbPath: /tmp\nsharding:\n  clusterRole: shardsvr\n", ["sharding is not supported", "line 3"]),
        ("net:\n  port: many\n", ["net.port", "line 2"]),
        ("storage:\n  engine: rocksdb\n", ["storage.engine: there is no storage engine 'rocksdb'", "line 2"]),
        ("storage:\n  journal:\n    enabled: false\n", ["storage.journal.enabled", "line 3"]),
        ("storage:\n  inMemory:\n    engineConfig:\n      inMemorySizeGB: 0\n", ["inMemorySizeGB: 0 is not", "line 4"]),
        ("storage:\n  lsm:\n    cacheSizeGB: -1\n", ["cacheSizeGB: -1 is not a number within 0.25 to 10000", "line 3"]),
        (
            "storage:\n  wiredTiger:\n    collectionConfig:\n      blockCompressor: zlib\n",
            ["blockCompressor: zlib is not supported", "line 4"],
        ),
        (
            "storage:\n  wiredTiger:\n    collectionConfig:\n      blockCompressor: brotli\n",
            ["unknown blockCompressor 'brotli': it is none, snappy, lz4 or zstd", "line 4"],
        ),
        ("storage:\n  lsm:\n    compressionLevel: 3\n", ["takes no compression level", "line 3"]),
    ] {
        let configured = Configured::new(text, &[]);
        let message = configured.refused(WRONG);
        for word in words.iter().chain([&configured.config().as_str()]) {
            assert!(message.contains(word), "'{word}' is not in: {message}");
        }
    }
    let message = message(&binary(), &["--config", "/nonexistent/mongod.conf"], WRONG);
    assert!(message.contains("/nonexistent/mongod.conf: No such file"), "{message}");
}

#[test]
fn flags_that_are_wrong_are_named() {
    for (flags, words) in [
        (["--storage-engine", "rocksdb"], "there is no storage engine 'rocksdb'"),
        (["--wiredTigerCacheSizeGB", "0"], "0 is not a number within 0.25 to 10000"),
        (["--inMemorySizeGB", "0"], "0 is not a number within 0.25 to 10000"),
        (["--block-compressor", "zlib"], "zlib is not supported"),
        (["--journalCommitInterval", "501"], "501 is not a whole number within 1 to 500"),
        (["--bind-ip", "nowhere.invalid"], "'nowhere.invalid' is neither an IP address"),
        (["--file-permissions", "700"], "'700' is not an octal mode with a leading zero"),
        (["--replSet", "a/b"], "'a/b' is not the name of a replica set"),
    ] {
        let text = output(&binary(), &flags, WRONG);
        assert!(text.contains(words), "{flags:?}: {text}");
    }
}

#[test]
fn an_engine_change_is_refused_and_says_what_to_do() {
    let dbpath = temporary_dbpath();
    let mut server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    assert_works(&server);
    server.stop();
    for (engine, words) in [
        ("mmap", ["made with storage engine 'lsm', and asked for is 'mmap'", "start with 'lsm'"]),
        ("memory", ["made with storage engine 'lsm'", "start with 'lsm'"]),
    ] {
        let flags = ["--port", "0", "--dbpath", flag(dbpath.path()), "--storage-engine", engine];
        let message = message(&binary(), &flags, FAILED);
        for word in words.iter().chain([&flag(dbpath.path())]) {
            assert!(message.contains(word), "'{word}' is not in: {message}");
        }
    }
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    assert_eq!(count(&server), "{n: 2, ok: 1.0}");
}

#[test]
fn missing_engine_files_are_named() {
    for (engine, name) in [("lsm", "trees"), ("mmap", "mmap")] {
        let dbpath = temporary_dbpath();
        let engine = ["--storage-engine", engine];
        let start = || Server::start(&binary(), dbpath.path(), &engine).expect("the server starts");
        let mut server = start();
        assert_works(&server);
        server.stop();
        let (files, kept) = (dbpath.path().join(name), dbpath.path().join("kept"));
        fs::rename(&files, &kept).expect("renamed");
        let own = ["--port", "0", "--dbpath", flag(dbpath.path())];
        let message = message(&binary(), &[&own[..], &engine].concat(), FAILED);
        assert!(message.contains(flag(&files)) && message.contains("missing"), "{message}");
        let _ = fs::remove_dir_all(&files);
        fs::rename(&kept, &files).expect("renamed");
        assert_eq!(count(&start()), "{n: 2, ok: 1.0}");
    }
}

#[test]
fn the_printed_configuration_starts_the_same_server() {
    let configured = Configured::new(WIRED_TIGER, &["/data/wiredTiger"]);
    let config = configured.config();
    let printed = print_config(&["--config", &config, "--bind_ip", "localhost", "--nounixsocket"]);
    for line in [
        "  bindIp: localhost  # flag --bind-ip".to_owned(),
        "    enabled: false  # flag --unix-socket".to_owned(),
        "  port: 27017  # default".to_owned(),
        format!("  engine: wiredTiger  # {config}, line 3"),
        format!("      blockCompressor: snappy  # {config}, line 11"),
    ] {
        assert!(printed.lines().any(|printed| printed == line), "'{line}' is not in:\n{printed}");
    }
    assert!(!configured.path("wiredTiger").exists(), "nothing is started");
    let again = Configured::new(&printed, &[]);
    let values = |text: &str| text.lines().map(|line| line.split("  # ").next().map(str::to_owned)).collect::<Vec<_>>();
    let twice = print_config(&["--config", &again.config()]);
    assert_eq!(values(&twice), values(&printed));
    let in_memory = print_config(&["--storage-engine", "inMemory"]);
    assert_eq!(values(&print_config(&["--config", &Configured::new(&in_memory, &[]).config()])), values(&in_memory));
    let (port, sockets) = (["--port", "0"], ["--config", &again.config()]);
    let server = Server::run(&binary(), &[port, sockets].concat()).expect("the server starts");
    assert_works(&server);
}

/// A client of a Unix domain socket.
fn connect(socket: &Path) -> Connection {
    let uri = format!("mongodb://{}/", flag(socket).replace('/', "%2F"));
    Connection::connect(&uri.parse::<Uri>().expect("valid")).expect("the server accepts connections")
}

fn run(connection: &mut Connection, text: &str) -> String {
    let command = shell::parse_document(text).expect("shell syntax");
    let reply = connection.run_command("admin", command.as_ref()).expect("it is answered");
    shell::print(ValueRef::Document(reply.as_ref()))
}

fn socket_of(directory: &Path, server: &Server) -> PathBuf {
    directory.join(format!("mongodb-{}.sock", server.address().port()))
}

#[test]
fn a_unix_socket_serves_and_is_removed() {
    let (dbpath, sockets) = (temporary_dbpath(), temporary_dbpath());
    let flags = ["--dbpath", flag(dbpath.path()), "--port", "0", "--unixSocketPrefix", flag(sockets.path())];
    let mut server = Server::run(&binary(), &flags).expect("the server starts");
    let socket = socket_of(sockets.path(), &server);
    let metadata = fs::metadata(&socket).expect("it is there");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    server.logged(&format!("\"uri\":\"mongodb://{}/\"", flag(&socket).replace('/', "%2F")));
    let mut connection = connect(&socket);
    assert_eq!(run(&mut connection, "{whatsmyuri: 1}"), "{you: \"anonymous unix socket\", ok: 1.0}");
    let pad = "x".repeat(2_000_000);
    assert_eq!(run(&mut connection, &format!("{{insert: 't', documents: [{{pad: '{pad}'}}]}}")), "{n: 1, ok: 1.0}");
    assert!(run(&mut connection, "{find: 't'}").contains(&pad));
    server.logged("\"remote\":\"anonymous unix socket\"");
    // A heartbeat waits for its time, or until the client disconnects. It may take longer, but not less.
    let hello = run(&mut connection, "{hello: 1}");
    let topology = hello.split("topologyVersion: ").nth(1).and_then(|rest| rest.split_inclusive('}').next());
    let topology = topology.expect("a topology version");
    let began = Instant::now();
    run(&mut connection, &format!("{{hello: 1, topologyVersion: {topology}, maxAwaitTimeMS: 200}}"));
    assert!(began.elapsed() >= Duration::from_millis(200));
    server.stop();
    assert!(!socket.exists());
}

#[test]
fn the_socket_of_a_killed_server_is_replaced_and_of_a_live_one_is_not() {
    let (dbpath, sockets) = (temporary_dbpath(), temporary_dbpath());
    let port = fixed_port().to_string();
    let flags = |dbpath: &Path, port: &str| {
        let flags = ["--dbpath", flag(dbpath), "--port", port, "--unix-socket-prefix", flag(sockets.path())];
        flags.map(str::to_owned).to_vec()
    };
    let run = |dbpath: &Path, port: &str| {
        let flags = flags(dbpath, port);
        Server::run(&binary(), &flags.iter().map(String::as_str).collect::<Vec<_>>()).expect("the server starts")
    };
    let mut server = run(dbpath.path(), &port);
    let socket = socket_of(sockets.path(), &server);
    server.kill();
    assert!(socket.exists());
    let server = run(dbpath.path(), &port);
    connect(&socket);
    drop(server);
    // Another process listens on the socket, though not on the port.
    fs::remove_file(&socket).expect("left by a kill");
    let _listener = UnixListener::bind(&socket).expect("bound");
    let flags = flags(dbpath.path(), &port);
    let refused = message(&binary(), &flags.iter().map(String::as_str).collect::<Vec<_>>(), FAILED);
    assert!(refused.contains(&format!("cannot bind {}: address in use", socket.display())), "{refused}");
    assert!(socket.exists());
}

/// Each family has its own socket, so that a server can listen on all addresses of both at once.
#[test]
fn both_families_are_served_on_all_addresses() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("this machine has no IPv6");
        return;
    }
    let port = fixed_port();
    for addresses in
        [&["--bind-ip", "::,0.0.0.0", "--ipv6"][..], &["--bind-ip", "0.0.0.0,::"], &["--bind-ip-all", "--ipv6"]]
    {
        let dbpath = temporary_dbpath();
        let port_flag = port.to_string();
        let flags = ["--dbpath", flag(dbpath.path()), "--port", &port_flag, "--no-unix-socket", "--insecure"];
        let mut server = Server::run(&binary(), &[&flags[..], addresses].concat()).expect("the server starts");
        for (address, seen) in [("127.0.0.1", "127.0.0.1:"), ("[::1]", "[::1]:")] {
            let mut peer = Peer::connect(format!("{address}:{port}").parse().expect("an address"));
            let you = peer.text("admin", "{whatsmyuri: 1}");
            assert!(you.starts_with(&format!("{{you: \"{seen}")), "{addresses:?}: {you}");
        }
        server.stop();
    }
}

#[test]
fn a_unix_socket_can_be_open_to_all_or_not_there() {
    let sockets = temporary_dbpath();
    for (own, mode) in [(["--filePermissions", "0777"], Some(0o777)), (["--log-format", "json"], Some(0o700))] {
        let dbpath = temporary_dbpath();
        let flags = ["--dbpath", flag(dbpath.path()), "--port", "0", "--unix-socket-prefix", flag(sockets.path())];
        let server = Server::run(&binary(), &[&flags[..], &own].concat()).expect("the server starts");
        let socket = socket_of(sockets.path(), &server);
        assert_eq!(fs::metadata(socket).ok().map(|metadata| metadata.permissions().mode() & 0o777), mode);
    }
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--nounixsocket"]).expect("the server starts");
    assert!(!server.output_tail().contains(".sock"));
}
