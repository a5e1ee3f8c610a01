//! `bunko check` as a process: against a server of our own, of which everything works, and against one that answers as
//! a mongod with features that are missing here.

use crate::peer::{Running, binary, message};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_testkit::process::fixed_port;
use bunko_testkit::shell;
use bunko_wire::{HEADER_BYTES, Message, MessageFlags, needed_bytes};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

/// Runs the check; returns its status and its standard output.
fn check(address: SocketAddr, arguments: &[&str]) -> (Option<i32>, String) {
    let uri = format!("mongodb://{address}/?directConnection=true");
    let output = Command::new(binary()).arg("check").arg(uri).args(arguments).output().expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.is_empty() || output.status.code() == Some(1), "{said}");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &said)
}

#[test]
fn all_features_of_our_own_server_work() {
    let running = Running::start();
    let mut peer = running.peer();
    for (database, command) in [
        ("shop", "{profile: 2}"),
        ("shop", "{create: 'items', validator: {$jsonSchema: {required: ['name']}}, collation: {locale: 'de'}}"),
        ("shop", "{create: 'log', capped: true, size: 4096}"),
        ("shop", "{create: 'weather', timeseries: {timeField: 'at', metaField: 'of'}}"),
        ("shop", "{create: 'names', viewOn: 'items', pipeline: [{$project: {name: 1}}], collation: {locale: 'de'}}"),
        (
            "shop",
            "{createIndexes: 'items', indexes: [{key: {name: 1}, name: 'n', collation: {locale: 'fr'}}, {key: {t: 'text'}, name: 't', collation: {locale: 'simple'}}, {key: {p: '2dsphere'}, name: 'p', collation: {locale: 'simple'}}, {key: {h: 'hashed'}, name: 'h'}, {key: {'$**': 1}, name: 'w'}]}",
        ),
        (
            "shop",
            "{createRole: 'clerk', privileges: [{resource: {db: 'shop', collection: 'items'}, actions: ['find']}], roles: []}",
        ),
        ("shop", "{createRole: 'boss', privileges: [], roles: ['clerk', 'readWrite']}"),
        ("shop", "{createUser: 'ann', pwd: 'secret', roles: ['boss'], customData: {floor: 3}}"),
        ("shop", "{insert: 'items', documents: [{name: 'a', p: [1, 2]}]}"),
        ("shop", "{find: 'items', filter: {name: {$in: ['a', 'b']}}, hint: 'n', collation: {locale: 'fr'}}"),
        ("shop", "{update: 'items', updates: [{q: {name: 'a'}, u: [{$set: {b: {$add: [1, '$c']}}}]}]}"),
        (
            "shop",
            "{aggregate: 'items', pipeline: [{$group: {_id: '$name', n: {$sum: 1}}}, {$sort: {n: -1}}], cursor: {}}",
        ),
        ("shop", "{delete: 'items', deletes: [{q: {name: 'a'}, limit: 1}]}"),
    ] {
        assert!(peer.text(database, command).ends_with("ok: 1.0}"), "{command}: {}", peer.text(database, command));
    }
    let (status, report) = check(running.address(), &[]);
    assert_eq!(status, Some(0), "{report}");
    for line in [
        "Collections and views: ",
        "Indexes: ",
        "Users and roles: 3 looked at, nothing found",
        "Commands and operators in use: ",
    ] {
        assert!(report.contains(line), "'{line}': {report}");
    }
    let (status, report) = check(running.address(), &["--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((status, report["findings"].as_array().map(Vec::len)), (Some(0), Some(0)));
    // Nothing was written.
    assert!(!peer.text("admin", "{listDatabases: 1, nameOnly: true}").contains("rehearsal"));
}

/// Replies of a mongod, by the name of the command. A name with a `/` is that of a command and its collection.
const MONGOD: &[(&str, &str)] = &[
    ("hello", "{isWritablePrimary: true, msg: 'isdbgrid', maxWireVersion: 25, minWireVersion: 0, ok: 1}"),
    ("buildInfo", "{version: '8.0.4', ok: 1}"),
    ("getParameter", "{authenticationMechanisms: ['SCRAM-SHA-256', 'GSSAPI'], ok: 1}"),
    ("getCmdLineOpts", "{parsed: {net: {port: 1}, security: {kmip: {serverName: 'keys'}}}, ok: 1}"),
    ("listDatabases", "{databases: [{name: 'config'}, {name: 'shop'}], ok: 1}"),
    (
        "listCollections",
        "{cursor: {id: 0, ns: 'shop.$cmd.listCollections', firstBatch: [
            {name: 'v', type: 'view', options: {viewOn: 'items', pipeline: [{$unheardOf: {}}]}},
            {name: 'items', type: 'collection', options: {storageEngine: {wiredTiger: {}}, validator: {a: {$unheardOf: 1}}}},
            {name: 'plain', type: 'collection', options: {}},
            {name: 'weather', type: 'timeseries', options: {timeseries: {timeField: 'at'}}},
            {name: 'system.views', type: 'collection', options: {}}]}, ok: 1}",
    ),
    (
        "listIndexes/plain",
        "{cursor: {id: 0, ns: 'shop.plain', firstBatch: [{v: 2, key: {_id: 1}, name: '_id_'},
            {v: 2, key: {a: 'columnstore'}, name: 'cs', ns: 'shop.plain'}, {v: 2, key: {a: 1}, name: 'a_1'}]}, ok: 1}",
    ),
    ("listIndexes", "{cursor: {id: 0, ns: 'shop.c', firstBatch: []}, ok: 1}"),
    ("rolesInfo", "{roles: [], ok: 1}"),
    (
        "usersInfo",
        "{users: [{user: 'ann', db: 'shop', roles: [{role: 'read', db: 'shop'}]},
            {user: 'bob', db: 'shop', roles: [{role: 'searchCoordinator2', db: 'admin'}]}], ok: 1}",
    ),
    (
        "serverStatus",
        "{metrics: {commands: {find: {total: 5, failed: 0}, getFreeMonitoringStatus: {total: 9, failed: 0}, shardCollection: {total: 2, failed: 0}, split: {total: 1, failed: 1}},
            aggStageCounters: {$match: 3, $mergeCursors: 2, $unheardOf: 2, $merge: 0},
            operatorCounters: {expressions: {$add: 3, $toHashedIndexKey: 1, $unheardOf: 1}, match: {$eq: 3, $alwaysTrue: 1, $unheardOf: 4},
                groupAccumulators: {$sum: 1, $unheardOf: 5}, windowAccumulators: {$rank: 1, $unheardOf: 6}}}, ok: 1}",
    ),
    (
        "find/system.profile",
        "{cursor: {id: 0, ns: 'shop.system.profile', firstBatch: [
            {op: 'command', ns: 'shop.plain', command: {aggregate: 'plain', pipeline: [{$match: {$expr: {$unheardOf: 1}}}], cursor: {}}},
            {op: 'query', ns: 'shop.plain', command: {find: 'plain', filter: {a: 1}, hint: 'gone', lsid: {id: 1}}},
            {op: 'query', ns: 'shop.plain', command: {find: 'plain', filter: {a: 2}}}]}, ok: 1}",
    ),
];

/// Answers each client of the listener as [`MONGOD`] says, until the test ends.
fn mongod() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a client");
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    loop {
        let mut frame = vec![0; HEADER_BYTES];
        if stream.read_exact(&mut frame).is_err() {
            return;
        }
        frame.resize(needed_bytes(&frame).expect("a length"), 0);
        stream.read_exact(&mut frame[HEADER_BYTES..]).expect("a frame");
        let request = Message::parse(&frame).expect("OP_MSG");
        let reply = reply(request.body);
        let mut answer = message(1, MessageFlags::NONE, reply.as_ref());
        answer[8..12].copy_from_slice(&request.header.request_id.to_le_bytes());
        stream.write_all(&answer).expect("sent");
    }
}

fn reply(request: DocumentRef<'_>) -> DocumentBuf {
    let first = request.first().expect("a command");
    let name = if first.name.eq_ignore_ascii_case("ismaster") { "hello" } else { first.name };
    let with_collection = format!("{}/{}", first.name, first.value.as_str().unwrap_or_default());
    let named = |name: &str| MONGOD.iter().find(|(command, _)| *command == name);
    let text = named(&with_collection)
        .or_else(|| named(name))
        .map_or("{ok: 0, code: 59, errmsg: 'no such command'}", |(_, text)| text);
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn exactly_the_missing_features_are_named() {
    let (status, report) = check(mongod(), &["--json"]);
    assert_eq!(status, Some(3), "{report}");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    let named: Vec<_> = findings
        .iter()
        .map(|finding| {
            format!("{} {}", finding["subject"].as_str().expect("text"), finding["name"].as_str().expect("text"))
        })
        .collect();
    let aggregate = r#"use shop: {"aggregate":"plain","pipeline":[{"$match":{"$expr":{"$unheardOf":1}}}],"cursor":{}}"#;
    let expected = [
        "server sharding",
        "server GSSAPI",
        "server settings",
        "collection shop.items",
        "collection shop.weather",
        "collection shop.v",
        "index shop.plain: cs",
        "user user shop.bob",
        "use command shardCollection",
        "use stage $unheardOf",
        "use expression $unheardOf",
        "use filter $unheardOf",
        "use accumulator $unheardOf",
        "use window operator $unheardOf",
        aggregate,
    ];
    assert_eq!(named, expected, "{report:#}");
    assert!(findings[2]["problem"].as_str().is_some_and(|problem| problem.starts_with("security.kmip")), "{report:#}");
}

#[test]
fn a_log_has_operations_too() {
    let running = Running::start();
    let log = tempfile::NamedTempFile::new().expect("a file");
    let line = |command: &str| {
        format!("{{\"id\": 51803, \"msg\": \"Slow query\", \"attr\": {{\"ns\": \"d.c\", \"command\": {command}}}}}\n")
    };
    let lines = [
        line(r#"{"find": "c", "filter": {"a": 1}}"#),
        "half a line {\n".to_owned(),
        line(r#"{"find": "c", "filter": {"a": {"$unheardOf": 1}}}"#),
        line(r#"{"find": "c", "filter": {"a": {"$unheardOf": 2}}}"#),
        // A command that the server cut, and one whose values it hid.
        line(r#"{"find": "c", "filter": {"a": {"$cut": 1}}}"#).replacen('{', r#"{"truncated": {"command": {}}, "#, 1),
        line(r####"{"find": "###", "filter": {"a": {"$hidden": "###"}}}"####),
    ];
    std::fs::write(log.path(), lines.concat()).expect("written");
    let (status, report) = check(running.address(), &["--log", log.path().to_str().expect("UTF-8")]);
    assert_eq!(status, Some(3), "{report}");
    assert_eq!(report.matches("unknown operator: $unheardOf").count(), 1, "{report}");
    assert!(!report.contains("$cut") && !report.contains("$hidden"), "{report}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let free = SocketAddr::from(([127, 0, 0, 1], fixed_port()));
    let uri = format!("mongodb://{free}/?serverSelectionTimeoutMS=200&connectTimeoutMS=200");
    let output = Command::new(binary()).args(["check", &uri]).output().expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains(&free.to_string()), "{said}");
}
