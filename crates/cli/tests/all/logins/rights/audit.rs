//! The audit log, redaction, and a password that must not appear anywhere after any command.

use super::{assert_refused, open};
use crate::logins::{assert_nowhere, run};
use crate::peer::{Peer, binary, code, command};
use bunko_bson::{DocumentRef, ValueRef, extended_json};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use bunko_wire::{MessageFlags, write_request};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A password that must not appear anywhere, and a value that must not appear in the log.
const PASSWORD: &str = "canary-p4ssw0rd";
const VALUE: &str = "canary-v4lue";

fn start(dbpath: &Path, extra: &[&str]) -> Server {
    let audit = dbpath.join("audit.json");
    let audit = audit.to_str().expect("text");
    let options = ["--auth", "--slowms", "0", "--auditDestination", "file", "--auditPath", audit];
    Server::start(&binary(), dbpath, &[&options[..], extra].concat()).expect("started")
}

fn read(dbpath: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dbpath.join("audit.json")).expect("readable");
    text.lines().map(str::to_owned).collect()
}

/// The events of that name, from `param` on.
fn events(lines: &[String], name: &str) -> Vec<String> {
    let is_it = |line: &&String| line.contains(&format!("\"atype\":\"{name}\""));
    lines.iter().filter(is_it).map(|line| line[line.find("\"param\"").expect("a param")..].to_owned()).collect()
}

#[test]
fn events_are_kept_and_no_password_is_shown_anywhere() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path(), &["--redactClientLogData"]);
    let mut anyone = open(&server, "", "");
    run(&mut anyone, "admin", &format!("{{createUser: 'root', pwd: '{PASSWORD}', roles: ['root']}}"));
    let mut root = open(&server, &format!("root:{PASSWORD}@"), "");
    run(&mut root, "test", "{profile: 2}");
    run(&mut root, "test", &format!("{{createUser: 'u', pwd: '{PASSWORD}', roles: ['read']}}"));
    run(&mut root, "test", &format!("{{updateUser: 'u', pwd: '{PASSWORD}-2'}}"));
    run(&mut root, "test", &format!("{{insert: 'c', documents: [{{_id: 1, secret: '{VALUE}'}}]}}"));
    run(&mut root, "test", &format!("{{find: 'c', filter: {{secret: '{VALUE}'}}}}"));
    run(&mut root, "test", "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a_1'}]}");
    let mut user = open(&server, &format!("u:{PASSWORD}-2@"), "?authSource=test");
    assert_refused(&mut user, "test", &format!("{{createUser: 'x', pwd: '{PASSWORD}', roles: []}}"));
    assert_refused(&mut user, "test", &format!("{{insert: 'c', documents: [{{secret: '{VALUE}'}}]}}"));
    let wrong = format!("mongodb://u:{PASSWORD}@{}/?authSource=test", server.address());
    assert!(bunko_client::Connection::connect(&wrong.parse().expect("valid")).is_err());
    let shown: Vec<_> = ["{getLog: 'global'}", "{currentOp: 1, $all: true}", "{usersInfo: 1, showPrivileges: false}"]
        .map(|command| shell::print((&run(&mut root, "admin", command)).into()))
        .into();
    assert!(shown.iter().all(|shown| !shown.contains(PASSWORD)) && !shown[0].contains(VALUE), "{}", shown[0]);
    server.logged("###");
    assert!(!server.output_tail().contains(VALUE));
    run(&mut user, "test", "{logout: 1}");
    run(&mut root, "test", "{drop: 'c'}");
    run(&mut root, "test", "{dropUser: 'u'}");
    run(&mut root, "admin", "{setParameter: 1, redactClientLogData: false, auditAuthorizationSuccess: true}");
    run(&mut root, "test", "{find: 'c'}");
    server.terminate();
    let lines = read(dbpath.path());
    let one = |name: &str, expected: &str| {
        let found = events(&lines, name);
        assert!(found.iter().any(|event| event.starts_with(expected)), "{name}: {found:?}");
    };
    one("createUser", r#""param":{"user":"root","db":"admin","roles":[{"role":"root","db":"admin"}]},"result":0}"#);
    one("updateUser", r#""param":{"user":"u","db":"test","passwordChanged":true},"result":0}"#);
    one("authenticate", r#""param":{"user":"u","db":"test","mechanism":"SCRAM-SHA-256"},"result":0}"#);
    one("authenticate", r#""param":{"user":"u","db":"test","mechanism":"SCRAM-SHA-256"},"result":18}"#);
    one("authCheck", r#""param":{"ns":"test.x","command":"createUser","args":{"createUser":"x","pwd":"xxx""#);
    one(
        "createIndex",
        r#""param":{"ns":"test.c","indexName":"a_1","indexSpec":{"key":{"a":1},"name":"a_1"}},"result":0}"#,
    );
    // These collections were created implicitly.
    for made in ["admin.system.users", "test.c"] {
        one("createCollection", &format!(r#""param":{{"ns":"{made}"}},"result":0}}"#));
    }
    one("dropCollection", r#""param":{"ns":"test.c"},"result":0}"#);
    one("dropUser", r#""param":{"user":"u","db":"test"},"result":0}"#);
    one("logout", r#""param":{"reason":"#);
    assert_eq!((events(&lines, "startup").len(), events(&lines, "shutdown").len()), (1, 1));
    let checked = events(&lines, "authCheck");
    assert!(checked.iter().any(|check| check.contains("\"command\":\"find\"") && check.ends_with("\"result\":0}")));
    let by_root = lines.iter().find(|line| line.contains("dropCollection")).expect("it is there");
    assert!(by_root.contains(r#""users":[{"user":"root","db":"admin"}],"roles":[{"role":"root","db":"admin"}]"#));
    assert!(by_root.contains(r#""local":{"ip":"127.0.0.1","port":"#), "{by_root}");
    assert!(!server.output_tail().contains(PASSWORD));
    assert_nowhere(dbpath.path(), PASSWORD);
}

#[test]
fn an_audit_log_is_filtered_and_rotated() {
    let dbpath = temporary_dbpath();
    let filter = [
        "--auditFilter",
        "{atype: {$in: ['createCollection', 'rotateLog']}, 'param.ns': {$nin: ['test.b', 'admin.system.users', 'admin.system.version']}}",
    ];
    let server = start(dbpath.path(), &filter);
    let mut anyone = open(&server, "", "");
    run(&mut anyone, "admin", super::ROOT);
    let mut root = open(&server, "root:secret@", "");
    for name in ["a", "b"] {
        run(&mut root, "test", &format!("{{create: '{name}'}}"));
    }
    assert_eq!(read(dbpath.path()).len(), 1, "{:?}", read(dbpath.path()));
    run(&mut root, "admin", "{logRotate: 'audit'}");
    run(&mut root, "test", "{create: 'c'}");
    let lines = read(dbpath.path());
    assert_eq!((lines.len(), events(&lines, "createCollection").len()), (2, 1), "{lines:?}");
    let files = std::fs::read_dir(dbpath.path()).expect("readable").filter_map(Result::ok);
    let rotated = files.filter(|file| file.file_name().to_string_lossy().starts_with("audit.json.")).count();
    assert_eq!(rotated, 1);
    for (settings, expected) in [
        (&["--auditDestination", "mail"][..], "'mail' is none of file, syslog, console"),
        (&["--auditDestination", "file"], "file needs auditLog.path"),
        (&["--auditDestination", "console", "--auditPath", "a"], "is for a file, not for console"),
        (&["--auditDestination", "syslog", "--auditFormat", "BSON"], "BSON is for a file, not for syslog"),
        (&["--auditFormat", "XML"], "is none of JSON, BSON"),
        (&["--auditFilter", "[1"], "is not a document"),
        (&["--auditFilter", "{atype: /create}"], "does not end"),
        (&["--auditDestination", "console", "--auditFilter", "{atype: /(/}"], "auditLog.filter"),
    ] {
        let directory = temporary_dbpath();
        let mut serve = std::process::Command::new(binary());
        serve.args(["serve", "--port", "0", "--no-unix-socket", "--dbpath"]).arg(directory.path());
        let refused = serve.args(settings).output().expect("run");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(expected), "{settings:?}: {said}");
    }
}

#[test]
fn both_ends_of_a_unix_domain_socket_are_told() {
    let (dbpath, sockets) = (temporary_dbpath(), temporary_dbpath());
    let audit = dbpath.path().join("audit.json");
    let [data, prefix, audit] = [dbpath.path(), sockets.path(), &audit].map(|path| path.to_str().expect("text"));
    let flags = ["--dbpath", data, "--port", "0", "--unixSocketPrefix", prefix];
    let audited = ["--auditDestination", "file", "--auditPath", audit];
    let server = Server::run(&binary(), &[&flags[..], &audited].concat()).expect("started");
    let socket = format!("{prefix}/mongodb-{}.sock", server.address().port());
    let uri = format!("mongodb://{}/", socket.replace('/', "%2F"));
    let mut connection = bunko_client::Connection::connect(&uri.parse().expect("valid")).expect("connected");
    run(&mut connection, "test", "{create: 'c'}");
    let lines = read(dbpath.path());
    let made = lines.iter().find(|line| line.contains("\"createCollection\"")).expect("an event");
    assert!(made.contains(&format!(r#""local":{{"unix":"{socket}"}},"remote":{{"unix":"anonymous"}}"#)), "{made}");
}

/// Clients that write events while the file is rotated.
const WRITERS: usize = 8;

/// The audit log and those that were rotated.
fn audit_files(dbpath: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dbpath).expect("readable").filter_map(|file| Some(file.ok()?.path()));
    let is_audit =
        |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("audit.json"));
    files.filter(is_audit).collect()
}

#[test]
fn no_event_is_lost_or_torn_while_the_file_is_rotated() {
    let dbpath = temporary_dbpath();
    let server = start(dbpath.path(), &["--auditFilter", "{atype: 'authCheck'}"]);
    let mut anyone = open(&server, "", "");
    run(&mut anyone, "admin", super::ROOT);
    let mut root = open(&server, "root:secret@", "");
    run(&mut root, "admin", "{createUser: 'u', pwd: 'p', roles: []}");
    let (pad, is_over) = ("x".repeat(1_000), AtomicBool::new(false));
    let refuse = |writer: usize| {
        let mut connection = open(&server, "u:p@", "");
        let refusals = (0..).take_while(|_| !is_over.load(Ordering::Relaxed)).map(|number| {
            let namespace = format!("w{writer}n{number}");
            assert_refused(&mut connection, "test", &format!("{{find: '{namespace}', comment: '{pad}'}}"));
            // Some hundred events for each file are enough.
            std::thread::sleep(Duration::from_millis(2));
            format!("test.{namespace}")
        });
        refusals.collect::<Vec<_>>()
    };
    let expected: Vec<_> = std::thread::scope(|scope| {
        let refuse = &refuse;
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || refuse(writer))).collect();
        // Names of rotated files differ only by their seconds.
        let wait = || std::thread::sleep(Duration::from_millis(1_050));
        wait();
        run(&mut root, "admin", "{logRotate: 'audit'}");
        wait();
        let process = Pid::from_raw(server.pid() as i32).expect("a process");
        kill_process(process, Signal::USR1).expect("sent");
        wait_until("the file is rotated a second time", || audit_files(dbpath.path()).len() == 3);
        wait();
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().expect("refused")).collect()
    });
    let files = audit_files(dbpath.path());
    assert_eq!(files.len(), 3, "{files:?}");
    let mut seen = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        assert!(text.ends_with('\n'), "{file:?}");
        for line in text.lines() {
            let event = extended_json::parse_document(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let param = event.as_ref().get("param").and_then(ValueRef::as_document).expect("a param");
            let namespace = param.get("ns").and_then(ValueRef::as_str).expect("a namespace");
            assert!(seen.insert(namespace.to_owned()), "{namespace} is there twice");
        }
    }
    let missing: Vec<_> = expected.iter().filter(|namespace| !seen.contains(*namespace)).collect();
    assert!(missing.is_empty() && expected.len() > WRITERS, "{} of {}: {missing:?}", missing.len(), expected.len());
}

/// A filter with patterns, and events as BSON documents.
#[test]
fn an_audit_log_may_be_bson_and_its_filter_have_patterns() {
    let dbpath = temporary_dbpath();
    let filter = r"{atype: /^(create|drop)Coll/, 'param.ns': {$not: /\.HIDDEN$|^admin\./i}}";
    let mut server = start(dbpath.path(), &["--auditFormat", "BSON", "--auditFilter", filter]);
    run(&mut open(&server, "", ""), "admin", super::ROOT);
    let mut root = open(&server, "root:secret@", "");
    for command in
        ["{create: 'a'}", "{create: 'hidden'}", "{createRole: 'r', roles: [], privileges: []}", "{drop: 'a'}"]
    {
        run(&mut root, "test", command);
    }
    server.terminate();
    let bytes = std::fs::read(dbpath.path().join("audit.json")).expect("readable");
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        let event = DocumentRef::parse(&rest[..length]).expect("a document");
        let param = event.get("param").and_then(ValueRef::as_document).expect("a param");
        let text = |value: Option<ValueRef<'_>>| value.and_then(ValueRef::as_str).map(str::to_owned);
        assert!(matches!(event.get("ts"), Some(ValueRef::DateTime(_))));
        found.push((text(event.get("atype")).expect("a name"), text(param.get("ns")).expect("a namespace")));
        rest = &rest[length..];
    }
    let expected = [("createCollection", "test.a"), ("dropCollection", "test.a")];
    assert_eq!(found, expected.map(|(name, namespace)| (name.to_owned(), namespace.to_owned())));
}

#[test]
fn an_audit_log_may_be_standard_output() {
    let dbpath = temporary_dbpath();
    let mut serve = std::process::Command::new(binary());
    serve.args(["serve", "--port", "0", "--no-unix-socket", "--dbpath"]).arg(dbpath.path());
    serve.args(["--auditDestination", "console", "--auditFilter", "{atype: /^s/}"]);
    let mut server =
        serve.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().expect("run");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(server.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
    assert!(line.starts_with(r#"{"atype":"startup","ts":{"$date":"#), "{line}");
    server.kill().expect("killed");
    server.wait().expect("it ends");
}

#[test]
fn every_creation_of_a_collection_is_audited_with_its_user() {
    let dbpath = temporary_dbpath();
    let server = start(dbpath.path(), &["--auditFilter", "{atype: 'createCollection', 'param.ns': /^test/}"]);
    run(&mut open(&server, "", ""), "admin", super::ROOT);
    let mut root = open(&server, "root:secret@", "");
    for (command, made) in [
        ("{insert: 'inserted', documents: [{_id: 1}]}", &["inserted"][..]),
        ("{insert: 'inserted', documents: [{_id: 2}]}", &[]),
        ("{update: 'missing', updates: [{q: {}, u: {$set: {a: 1}}}]}", &[]),
        ("{update: 'upserted', updates: [{q: {_id: 1}, u: {$set: {a: 1}}, upsert: true}]}", &["upserted"]),
        ("{findAndModify: 'found', query: {_id: 1}, update: {a: 1}, upsert: true}", &["found"]),
        ("{createIndexes: 'indexed', indexes: [{key: {a: 1}, name: 'a'}]}", &["indexed"]),
        ("{aggregate: 'inserted', pipeline: [{$out: 'out'}], cursor: {}}", &["out"]),
        ("{aggregate: 'inserted', pipeline: [{$out: 'out'}], cursor: {}}", &[]),
        ("{aggregate: 'inserted', pipeline: [{$merge: 'merged'}], cursor: {}}", &["merged"]),
        ("{create: 'asked'}", &["asked"]),
    ] {
        let before = read(dbpath.path()).len();
        run(&mut root, "test", command);
        let lines = read(dbpath.path()).split_off(before);
        let expected: Vec<_> =
            made.iter().map(|name| format!(r#""param":{{"ns":"test.{name}"}},"result":0}}"#)).collect();
        assert_eq!(events(&lines, "createCollection"), expected, "{command}");
        assert!(lines.iter().all(|line| line.contains(r#""users":[{"user":"root","db":"admin"}]"#)), "{lines:?}");
    }
    let bulk = "{bulkWrite: 1, ops: [{insert: 0, document: {}}, {insert: 1, document: {}}], nsInfo: [{ns: 'test.x'}, {ns: 'test.y'}]}";
    let before = read(dbpath.path()).len();
    run(&mut root, "admin", bulk);
    assert_eq!(read(dbpath.path()).len(), before + 2);
}

/// Drivers send indexes in the command; a client that wants to leave no trace may send them in a document sequence.
#[test]
fn an_index_is_noted_whichever_way_it_was_sent() {
    let dbpath = temporary_dbpath();
    let audit = dbpath.path().join("audit.json");
    let audited = ["--auditDestination", "file", "--auditPath", audit.to_str().expect("text")];
    let server = Server::start(&binary(), dbpath.path(), &audited).expect("started");
    let mut peer = Peer::connect(server.address());
    peer.run("test", "{createIndexes: 'c', indexes: [{key: {a: 1}, name: 'a'}]}");
    let body = command("test", "{createIndexes: 'c'}");
    let index = shell::parse_document("{key: {b: 1}, name: 'b'}").expect("an index");
    let mut frame = Vec::new();
    let write_body = |out: &mut Vec<u8>| out.extend_from_slice(body.as_ref().as_bytes());
    write_request(&mut frame, 9, MessageFlags::NONE, write_body, "indexes", [index.as_ref().as_bytes()])
        .expect("small");
    peer.send(&frame);
    assert_eq!(code(peer.reply_to(9).as_ref()), 0);
    let made: Vec<_> = events(&read(dbpath.path()), "createIndex");
    assert_eq!(
        made,
        ["a", "b"].map(|name| {
            let spec = format!(r#"{{"key":{{"{name}":1}},"name":"{name}"}}"#);
            format!(r#""param":{{"ns":"test.c","indexName":"{name}","indexSpec":{spec}}},"result":0}}"#)
        })
    );
}

const SET_FILTER: &str = "{setClusterParameter: {auditConfig: {filter: {atype: {$in: ['createCollection', 'authCheck']}}, auditAuthorizationSuccess: true}}}";
const GET_FILTER: &str = "{getClusterParameter: 'auditConfig'}";

#[test]
fn clients_say_which_events_are_written_where_they_may() {
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path(), &["--auditRuntimeConfiguration"]);
    run(&mut open(&server, "", ""), "admin", super::ROOT);
    let mut root = open(&server, "root:secret@", "");
    run(&mut root, "admin", "{createUser: 'u', pwd: 'p', roles: ['readWriteAnyDatabase']}");
    let shown = shell::print((&run(&mut root, "admin", GET_FILTER)).into());
    assert!(shown.contains("{_id: \"auditConfig\", filter: {}, auditAuthorizationSuccess: false}"), "{shown}");
    run(&mut root, "admin", SET_FILTER);
    // The new filter excludes this event, but an attempt to silence the log is still recorded.
    assert_eq!(events(&read(dbpath.path()), "auditConfigure").len(), 1);
    let silent = "{setClusterParameter: {auditConfig: {filter: {atype: 'nothing'}}}}";
    run(&mut root, "admin", silent);
    run(&mut root, "admin", SET_FILTER);
    assert_eq!(
        events(&read(dbpath.path()), "auditConfigure").len(),
        1,
        "neither the filter before nor the new one has it"
    );
    // Users without the privilege may not set it, and some values are refused.
    let mut user = open(&server, "u:p@", "");
    for command in [
        SET_FILTER,
        GET_FILTER,
        "{getAuditConfig: 1}",
        "{setAuditConfig: 1, filter: {}, auditAuthorizationSuccess: false}",
    ] {
        assert_refused(&mut user, "admin", command);
    }
    for (wrong, code) in [
        ("{setClusterParameter: {auditConfig: {filter: {$nonsense: 1}}}}", 2),
        ("{setClusterParameter: {auditConfig: {filter: 1}}}", 14),
        ("{setClusterParameter: {auditConfig: {filter: {}, other: 1}}}", 40415),
        ("{setAuditConfig: 1, filter: {}}", 40414),
        ("{setParameter: 1, auditAuthorizationSuccess: false}", 2),
    ] {
        let (found, message) = super::attempt(&mut root, "admin", wrong);
        assert_eq!(found, code, "{wrong}: {message}");
    }
    let before = read(dbpath.path()).len();
    run(&mut root, "test", "{find: 'c'}");
    run(&mut root, "test", "{insert: 'c', documents: [{}]}");
    run(&mut root, "test", "{drop: 'c'}");
    let lines = read(dbpath.path()).split_off(before);
    let made = events(&lines, "createCollection");
    assert_eq!((made.len(), events(&lines, "dropCollection").len()), (1, 0), "{lines:?}");
    assert!(events(&lines, "authCheck").iter().any(|event| event.contains("\"command\":\"find\"")), "{lines:?}");
    // The setting survives a restart.
    server.terminate();
    let server = start(dbpath.path(), &["--auditRuntimeConfiguration"]);
    let mut root = open(&server, "root:secret@", "");
    let shown = shell::print((&run(&mut root, "admin", "{getAuditConfig: 1}")).into());
    assert!(shown.contains("clusterParameterTime") && shown.contains("auditAuthorizationSuccess: true"), "{shown}");
    let before = read(dbpath.path()).len();
    run(&mut root, "test", "{drop: 'nothing'}");
    assert!(events(&read(dbpath.path()).split_off(before), "dropCollection").is_empty());
    run(&mut root, "admin", "{setAuditConfig: 1, filter: {}, auditAuthorizationSuccess: false}");
    let changed = events(&read(dbpath.path()), "auditConfigure").split_off(1);
    let [event] = &changed[..] else { panic!("{changed:?}") };
    assert!(event.starts_with(r#""param":{"previous":{"filter":{"atype""#), "{event}");
    let config = r#""config":{"filter":{},"auditAuthorizationSuccess":false}},"result":0}"#;
    assert!(event.ends_with(config), "{event}");
}

#[test]
fn a_filter_of_the_command_line_is_shown_but_cannot_be_set() {
    let directory = temporary_dbpath();
    let server = start(directory.path(), &["--auditFilter", "{atype: 'logout'}"]);
    run(&mut open(&server, "", ""), "admin", super::ROOT);
    let mut root = open(&server, "root:secret@", "");
    assert_eq!(super::attempt(&mut root, "admin", SET_FILTER).0, 345);
    let shown = shell::print((&run(&mut root, "admin", GET_FILTER)).into());
    assert!(shown.contains("filter: {atype: \"logout\"}"), "{shown}");
    // Without an audit log the parameter does not exist.
    let mut guarded = super::Guarded::start();
    for (command, code) in [(SET_FILTER, 4), (GET_FILTER, 4), ("{getAuditConfig: 1}", 344)] {
        let (found, message) = super::attempt(&mut guarded.root, "admin", command);
        assert_eq!(found, code, "{command}: {message}");
    }
    assert!(
        !shell::print((&run(&mut guarded.root, "admin", "{getClusterParameter: '*'}")).into()).contains("auditConfig")
    );
    let mut serve = std::process::Command::new(binary());
    serve.args(["serve", "--port", "0", "--no-unix-socket", "--dbpath"]).arg(directory.path());
    serve.args(["--auditDestination", "console", "--auditRuntimeConfiguration", "--auditFilter", "{}"]);
    let refused = serve.output().expect("run");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot be set with auditLog.runtimeConfiguration"));
}
