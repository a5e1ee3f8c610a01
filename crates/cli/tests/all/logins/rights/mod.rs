//! Rights of users on a server with `--auth`.

mod audit;
mod canary;
mod canary_fields;
mod detours;
mod escalation;
mod identities;
mod legacy;
mod matrix;
mod own_roles;
mod restored;
mod restrictions;
mod sessions;
mod stored_settings;
mod transactions;
mod write_block;

use super::{binary, run};
use crate::peer::{Peer, errmsg};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{ClientError, Connection, Uri};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::process::{Command, Output};

pub const ROOT: &str = "{createUser: 'root', pwd: 'secret', roles: ['root']}";

/// A server with `--auth` and its first user.
pub struct Guarded {
    pub server: Server,
    pub root: Connection,
    _dbpath: tempfile::TempDir,
}

impl Guarded {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more options.
    pub fn start_with(options: &[&str]) -> Self {
        let dbpath = temporary_dbpath();
        let server = Server::start(&binary(), dbpath.path(), &[&["--auth"], options].concat()).expect("started");
        let mut anyone = open(&server, "", "");
        run(&mut anyone, "admin", ROOT);
        let mut root = open(&server, "root:secret@", "");
        // Fewer iterations than the default, because the tests create many users.
        run(&mut root, "admin", "{setParameter: 1, scramSHA256IterationCount: 5000}");
        Self { server, root, _dbpath: dbpath }
    }

    /// Creates a user in `admin` with the password `p` and logs in.
    pub fn user(&mut self, name: &str, roles: &str) -> Connection {
        let create = format!("{{createUser: '{name}', pwd: 'p', roles: {roles}, mechanisms: ['SCRAM-SHA-256']}}");
        run(&mut self.root, "admin", &create);
        self.log_in(name)
    }

    pub fn log_in(&self, name: &str) -> Connection {
        open(&self.server, &format!("{name}:p@"), "?authMechanism=SCRAM-SHA-256")
    }
}

pub fn open(server: &Server, user: &str, options: &str) -> Connection {
    let uri = format!("mongodb://{user}{}/{options}", server.address());
    Connection::connect(&uri.parse::<Uri>().expect("valid")).unwrap_or_else(|error| panic!("{uri}: {error}"))
}

/// The code of a refusal, 0 for none, and its message.
pub fn attempt(connection: &mut Connection, database: &str, command: &str) -> (i32, String) {
    let body = shell::parse_document(command).expect(command);
    match connection.run_command(database, body.as_ref()) {
        Ok(_) => (0, String::new()),
        Err(ClientError::Command(error)) => (error.code, error.message),
        Err(other) => panic!("{command}: {other}"),
    }
}

fn assert_refused(connection: &mut Connection, database: &str, command: &str) {
    let (code, message) = attempt(connection, database, command);
    assert_eq!(code, 13, "{command} on {database}: {message}");
}

fn shown(reply: &DocumentBuf) -> String {
    shell::print(reply.into())
}

#[test]
fn before_a_login_there_is_only_what_a_login_takes() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--auth"]).expect("started");
    server.logged("there is no user yet");
    let mut peer = Peer::connect(server.address());
    for command in ["{hello: 1}", "{isMaster: 1}", "{ping: 1}", "{buildInfo: 1}", "{connectionStatus: 1}"] {
        assert_eq!(crate::peer::code(peer.run("admin", command).as_ref()), 0, "{command}");
    }
    let reply = peer.run("test", "{find: 'c'}");
    assert_eq!(errmsg(reply.as_ref()), "Command find requires authentication");
    for command in ["{listDatabases: 1}", "{serverStatus: 1}", "{getParameter: '*'}", "{shutdown: 1}", "{usersInfo: 1}"]
    {
        assert_eq!(crate::peer::code(peer.run("admin", command).as_ref()), 13, "{command}");
    }
    // Only the first user can be created, and only in `admin`.
    let first = "{createUser: 'root', pwd: 'secret', roles: ['root']}";
    assert_eq!(crate::peer::code(peer.run("test", first).as_ref()), 13);
    let elsewhere = "{createUser: 'root', pwd: 'secret', roles: [{role: 'readWrite', db: 'test'}]}";
    assert_eq!(crate::peer::code(peer.run("admin", elsewhere).as_ref()), 13);
    let reserved = "{createUser: 'root', pwd: 'secret', roles: ['__system']}";
    assert!(errmsg(peer.run("admin", reserved).as_ref()).contains("cannot be granted"));
    assert_eq!(crate::peer::code(peer.run("admin", first).as_ref()), 0);
    let second = "{createUser: 'other', pwd: 'secret', roles: ['root']}";
    assert_eq!(errmsg(peer.run("admin", second).as_ref()), "Command createUser requires authentication");
    // The exception stays closed after that user is dropped.
    let mut root = open(&server, "root:secret@", "");
    run(&mut root, "admin", "{dropUser: 'root'}");
    assert_eq!(crate::peer::code(peer.run("admin", second).as_ref()), 13);
    assert_eq!(attempt(&mut root, "admin", "{listDatabases: 1}").0, 13, "a dropped user is logged out");
}

#[test]
fn a_refusal_shows_no_secret() {
    let mut guarded = Guarded::start();
    let mut user = guarded.user("reader", "[{role: 'read', db: 'own'}]");
    let (code, message) = attempt(&mut user, "other", "{createUser: 'x', pwd: 'canary', roles: []}");
    assert_eq!(code, 13);
    assert!(
        message.starts_with("not authorized on other to execute command { createUser: \"x\", pwd: \"xxx\""),
        "{message}"
    );
    guarded.server.logged("Checking authorization failed");
    assert!(!guarded.server.output_tail().contains("canary"));
}

#[test]
fn statistics_of_queries_need_one_right_as_they_are_and_another_with_hidden_names() {
    let mut guarded = Guarded::start();
    let plain = "{aggregate: 1, pipeline: [{$queryStats: {}}], cursor: {}}";
    let hidden = "{aggregate: 1, pipeline: [{$queryStats: {transformIdentifiers: {algorithm: 'hmac-sha-256', \
                  hmacKey: BinData(8, 'c2VjcmV0')}}}], cursor: {}}";
    for action in ["queryStatsRead", "queryStatsReadTransformed"] {
        let privileges = format!("[{{resource: {{cluster: true}}, actions: ['{action}']}}]");
        let role = format!("{{createRole: '{action}', privileges: {privileges}, roles: []}}");
        run(&mut guarded.root, "admin", &role);
    }
    for (role, sees_plain, sees_hidden) in [
        ("queryStatsRead", true, false),
        ("queryStatsReadTransformed", false, true),
        ("clusterMonitor", true, true),
        ("readAnyDatabase", false, false),
    ] {
        let mut user = guarded.user(role, &format!("['{role}']"));
        for (command, is_allowed) in [(plain, sees_plain), (hidden, sees_hidden)] {
            let (code, message) = attempt(&mut user, "admin", command);
            assert_eq!(code, if is_allowed { 0 } else { 13 }, "{role}: {command}: {message}");
            assert!(!message.contains("c2VjcmV0"), "{message}");
        }
    }
}

#[test]
fn pipelines_reach_only_what_their_user_may_reach() {
    let mut guarded = Guarded::start();
    let root = &mut guarded.root;
    for database in ["own", "other"] {
        run(root, database, "{insert: 'c', documents: [{_id: 1}]}");
    }
    run(root, "own", "{create: 'view', viewOn: 'hidden', pipeline: [{$lookup: {from: 'c', pipeline: [], as: 'l'}}]}");
    run(root, "own", "{insert: 'hidden', documents: [{_id: 1}]}");
    let privileges = "[{resource: {db: 'own', collection: 'c'}, actions: ['find', 'update']}, \
                      {resource: {db: 'own', collection: 'view'}, actions: ['find']}, \
                      {resource: {db: 'own', collection: 'out'}, actions: ['insert']}, \
                      {resource: {db: 'own', collection: ''}, actions: ['createCollection']}]";
    run(root, "admin", &format!("{{createRole: 'narrow', privileges: {privileges}, roles: []}}"));
    let mut user = guarded.user("narrow", "['narrow']");
    let aggregate = |pipeline: &str| format!("{{aggregate: 'c', pipeline: {pipeline}, cursor: {{}}}}");
    for allowed in [
        "[]",
        "[{$lookup: {from: 'view', pipeline: [], as: 'l'}}]",
        "[{$merge: {into: 'out', whenMatched: 'fail'}}]",
        "[{$merge: {into: 'c', whenNotMatched: 'discard'}}]",
    ] {
        assert_eq!(attempt(&mut user, "own", &aggregate(allowed)), (0, String::new()), "{allowed}");
    }
    // A user who may read a view can read it without rights on the collection below.
    assert_eq!(attempt(&mut user, "own", "{find: 'view'}").0, 0);
    for refused in [
        "[{$lookup: {from: 'hidden', pipeline: [], as: 'l'}}]",
        "[{$lookup: {from: 'c', pipeline: [{$unionWith: 'hidden'}], as: 'l'}}]",
        "[{$facet: {a: [{$graphLookup: {from: 'hidden', startWith: '$_id', connectFromField: 'a', connectToField: 'b', as: 'l'}}]}}]",
        "[{$unionWith: {coll: 'c', pipeline: [{$lookup: {from: 'hidden', pipeline: [], as: 'l'}}]}}]",
        "[{$unionWith: 'hidden'}]",
        "[{$out: 'out'}]",
        "[{$out: {db: 'other', coll: 'out'}}]",
        "[{$merge: 'out'}]",
        "[{$merge: {into: {db: 'other', coll: 'out'}, whenMatched: 'fail'}}]",
        "[{$collStats: {count: {}}}]",
        "[{$indexStats: {}}]",
        "[{$listCatalog: {}}]",
        "[{$unionWith: {coll: 'c', pipeline: [{$listCatalog: {}}]}}]",
        "[{$lookup: {from: 'c', pipeline: [{$listCatalog: {}}], as: 'l'}}]",
        "[{$planCacheStats: {}}]",
        "[{$changeStream: {}}]",
    ] {
        assert_refused(&mut user, "own", &aggregate(refused));
        assert_refused(&mut user, "own", &format!("{{explain: {}}}", aggregate(refused)));
    }
    assert_refused(&mut user, "own", "{create: 'v', viewOn: 'hidden'}");
    assert_refused(&mut user, "own", "{create: 'v', viewOn: 'c', pipeline: [{$unionWith: 'hidden'}]}");
    assert_eq!(attempt(&mut user, "own", "{create: 'v', viewOn: 'c'}").0, 0);
    assert_refused(&mut user, "admin", "{aggregate: 1, pipeline: [{$currentOp: {allUsers: true}}], cursor: {}}");
    assert_eq!(attempt(&mut user, "admin", "{aggregate: 1, pipeline: [{$currentOp: {}}], cursor: {}}").0, 0);
    // Upserts, and writes to several collections at once.
    assert_eq!(attempt(&mut user, "own", "{update: 'c', updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}").0, 0);
    assert_refused(&mut user, "own", "{update: 'c', updates: [{q: {_id: 2}, u: {$set: {a: 1}}, upsert: true}]}");
    let bulk = |ops: &str| format!("{{bulkWrite: 1, ops: {ops}, nsInfo: [{{ns: 'own.c'}}, {{ns: 'other.c'}}]}}");
    assert_eq!(attempt(&mut user, "admin", &bulk("[{update: 0, filter: {}, updateMods: {$set: {a: 2}}}]")).0, 0);
    for ops in [
        "[{update: 1, filter: {}, updateMods: {$set: {a: 2}}}]",
        "[{update: 0, filter: {}, updateMods: {$set: {a: 2}}}, {insert: 1, document: {}}]",
        "[{update: 0, filter: {}, updateMods: {$set: {a: 2}}, upsert: true}]",
        "[{delete: 0, filter: {}}]",
    ] {
        assert_refused(&mut user, "admin", &bulk(ops));
    }
}

#[test]
fn lists_show_what_their_reader_knows_of() {
    let mut guarded = Guarded::start();
    for (database, collection) in [("own", "c"), ("own", "hidden"), ("other", "c")] {
        run(&mut guarded.root, database, &format!("{{insert: '{collection}', documents: [{{}}]}}"));
    }
    let privilege = "{resource: {db: 'own', collection: 'c'}, actions: ['find']}";
    run(&mut guarded.root, "admin", &format!("{{createRole: 'narrow', privileges: [{privilege}], roles: []}}"));
    let mut user = guarded.user("narrow", "['narrow']");
    let databases = shown(&run(&mut user, "admin", "{listDatabases: 1, nameOnly: true}"));
    assert_eq!(databases, "{databases: [{name: \"own\"}], ok: 1.0}");
    assert_refused(&mut user, "admin", "{listDatabases: 1, authorizedDatabases: false}");
    assert_refused(&mut user, "own", "{listCollections: 1, nameOnly: true}");
    assert_refused(&mut user, "other", "{listCollections: 1, nameOnly: true, authorizedCollections: true}");
    let listed = run(&mut user, "own", "{listCollections: 1, nameOnly: true, authorizedCollections: true}");
    assert_eq!(crate::peer::first_batch(&listed), ["{name: \"c\", type: \"collection\"}"]);
    // Users may see themselves, but no other user.
    assert!(shown(&run(&mut user, "admin", "{usersInfo: 'narrow'}")).contains("user: \"narrow\""));
    assert_refused(&mut user, "admin", "{usersInfo: 'root'}");
    assert_refused(&mut user, "admin", "{updateUser: 'narrow', pwd: 'q'}");
    run(
        &mut guarded.root,
        "admin",
        "{createRole: 'own', privileges: [{resource: {db: 'admin', collection: ''}, actions: ['changeOwnPassword']}], roles: []}",
    );
    run(&mut guarded.root, "admin", "{grantRolesToUser: 'narrow', roles: ['own']}");
    assert_refused(&mut user, "admin", "{updateUser: 'root', pwd: 'q'}");
    assert_refused(&mut user, "admin", "{updateUser: 'narrow', pwd: 'p', roles: ['root']}");
    run(&mut user, "admin", "{updateUser: 'narrow', pwd: 'p'}");
    let reserved = attempt(&mut guarded.root, "admin", "{grantRolesToUser: 'narrow', roles: ['__system']}");
    assert!(reserved.0 != 0 && reserved.1.contains("cannot be granted"), "{reserved:?}");
}

#[test]
fn cursors_sessions_and_operations_are_their_users() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{insert: 'c', documents: [{}, {}, {}, {}, {}]}");
    let (mut one, mut other) =
        (guarded.user("one", "[{role: 'read', db: 'own'}]"), guarded.user("other", "[{role: 'read', db: 'own'}]"));
    let session = "lsid: {id: UUID('00112233-4455-4677-8899-aabbccddeeff')}";
    let opened = run(&mut one, "own", &format!("{{find: 'c', batchSize: 1, {session}}}"));
    let cursor = opened.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
    let id = cursor.get("id").and_then(bunko_bson::number::as_i64_exact).expect("an id");
    let more = format!("{{getMore: NumberLong('{id}'), collection: 'c', batchSize: 1, {session}}}");
    // A cursor belongs to the user who opened it, in whichever session. Another user with that session UUID has another
    // session.
    assert_refused(&mut other, "own", &more);
    run(&mut other, "own", &format!("{{find: 'c', {session}}}"));
    assert_refused(&mut other, "own", &more.replace(&format!(", {session}"), ""));
    assert_refused(&mut other, "own", &format!("{{killCursors: 'c', cursors: [NumberLong('{id}')]}}"));
    run(&mut other, "admin", "{endSessions: [{id: UUID('00112233-4455-4677-8899-aabbccddeeff')}]}");
    run(&mut other, "admin", "{killSessions: []}");
    run(&mut other, "admin", "{killSessions: [{id: UUID('00112233-4455-4677-8899-aabbccddeeff')}]}");
    assert_refused(&mut other, "admin", "{killAllSessions: []}");
    run(&mut one, "own", &more);
    // The operations of other users are hidden.
    let own = shown(&run(&mut other, "admin", "{currentOp: 1, $ownOps: true, $all: true}"));
    assert!(own.contains("{user: \"other\", db: \"admin\"}") && !own.contains("{user: \"one\""), "{own}");
    assert_refused(&mut other, "admin", "{currentOp: 1}");
    assert_refused(&mut other, "admin", "{killOp: 1, op: 1}");
    // A revoked privilege also ends for open cursors.
    run(&mut guarded.root, "admin", "{grantRolesToUser: 'one', roles: ['readAnyDatabase']}");
    run(&mut one, "own", &more);
    run(&mut guarded.root, "admin", "{revokeRolesFromUser: 'one', roles: [{role: 'read', db: 'own'}]}");
    let closed = attempt(&mut one, "own", &more).0;
    assert!(closed == 13 || closed == 43, "{closed}");
    run(&mut guarded.root, "admin", "{revokeRolesFromUser: 'one', roles: ['readAnyDatabase']}");
    assert_refused(&mut one, "own", "{find: 'c'}");
}

/// Arguments of a run of the lab that takes a second.
const MEASURE: [&str; 13] = [
    "bench",
    "point-operations",
    "--scale",
    "1MB",
    "--repetitions",
    "1",
    "--set",
    "load.duration=200ms",
    "--set",
    "load.warm-up=50ms",
    "--set",
    "load.connections=2",
    "--quiet",
];

/// Whether a run of the lab ended with a report. On a busy machine its verdict is "not valid", which is status 2 as
/// wrong arguments are; these print no report.
fn has_measured(output: &Output) -> bool {
    matches!(output.status.code(), Some(0 | 2)) && !output.stdout.is_empty()
}

fn bunko(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(binary()).args(arguments).envs(environment.iter().copied()).output().expect("it runs")
}

fn the_first_user_is_made_once(arguments: &[&str]) {
    let dbpath = temporary_dbpath();
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "from a file\n").expect("written");
    let start = || {
        let mut command = Command::new(binary());
        command.args(["serve", "--port", "0", "--no-unix-socket", "--dbpath"]).arg(dbpath.path()).args(arguments);
        command.env("MONGO_INITDB_ROOT_USERNAME", "root").env("MONGO_INITDB_ROOT_PASSWORD_FILE", file.path());
        Server::spawn(command).expect("started")
    };
    let server = start();
    let mut root = open(&server, "root:from%20a%20file@", "");
    assert_eq!(attempt(&mut root, "admin", "{listDatabases: 1}").0, 0);
    assert_refused(&mut open(&server, "", ""), "admin", "{createUser: 'other', pwd: 'p', roles: ['root']}");
    drop(server);
    std::fs::write(file.path(), "another").expect("written");
    let server = start();
    // The existing user stays unchanged.
    open(&server, "root:from%20a%20file@", "");
    assert!(!server.output_tail().contains("from a file"));
}

#[test]
fn the_environment_makes_the_first_user() {
    // A replica set has already written its own collections when the first user is created.
    for arguments in [&[][..], &["--replSet", "rs", "--replSetHost", "localhost:27017"]] {
        the_first_user_is_made_once(arguments);
    }
    let half = bunko(&["serve"], &[("MONGO_INITDB_ROOT_USERNAME", "root")]);
    assert_eq!(half.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&half.stderr).contains("one is missing"));
}

#[test]
fn tools_log_in() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{insert: 'c', documents: [{_id: 1}]}");
    let (uri, anyone) = (
        format!("mongodb://root:secret@{}/", guarded.server.address()),
        format!("mongodb://{}/", guarded.server.address()),
    );
    let out = tempfile::tempdir().expect("a directory");
    let out = out.path().join("dump");
    let out = out.to_str().expect("UTF-8");
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let refused = bunko(&["dump", "--uri", &anyone, "--out", out], &[]);
    assert!(!refused.status.success() && said(&refused).contains("requires authentication"), "{}", said(&refused));
    let dumped = bunko(&["dump", "--uri", &uri, "--out", out], &[]);
    assert!(dumped.status.success(), "{}", said(&dumped));
    run(&mut guarded.root, "own", "{dropDatabase: 1}");
    let restored = bunko(&["restore", "--uri", &uri, out], &[]);
    assert!(restored.status.success(), "{}", said(&restored));
    assert!(shown(&run(&mut guarded.root, "own", "{find: 'c'}")).contains("_id: 1"));
    let report = format!("{out}-report");
    let measured = bunko(&[&MEASURE[..], &["--uri", &uri, "--output", &report]].concat(), &[]);
    assert!(has_measured(&measured), "{}", said(&measured));
}

/// A `getMore` that waits for documents: its tailable cursor is at the end of the collection.
fn waiting_get_more(connection: &mut Connection) -> String {
    let found = run(connection, "own", "{find: 'c', tailable: true, awaitData: true, batchSize: 1000}");
    let id = found.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|cursor| cursor.get("id"));
    let Some(ValueRef::Int64(id)) = id else { panic!("no cursor: {found:?}") };
    format!("{{getMore: NumberLong('{id}'), collection: 'c', maxTimeMS: 600000}}")
}

/// Waits until `count` operations on the collection run.
fn await_operations(root: &mut Connection, count: usize) {
    wait_until("all operations run", || {
        let found = run(root, "admin", "{currentOp: 1, ns: 'own.c', active: true}");
        found.as_ref().get("inprog").and_then(ValueRef::as_array).expect("inprog").iter().count() >= count
    });
}

#[test]
fn a_revoked_privilege_ends_running_operations() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{create: 'c', capped: true, size: 100000}");
    let documents: Vec<_> = (0..1000).map(|id| format!("{{_id: {id}}}")).collect();
    run(&mut guarded.root, "own", &format!("{{insert: 'c', documents: [{}]}}", documents.join(", ")));
    let bystander = guarded.user("bystander", "[{role: 'read', db: 'own'}]");
    let mut cases = vec![("{invalidateUserCache: 1}", bystander)];
    for (number, revocation) in [
        "{revokeRolesFromUser: 'u0', roles: [{role: 'read', db: 'own'}]}",
        "{dropUser: 'u1'}",
        "{updateUser: 'u2', roles: []}",
        "{delete: 'system.users', deletes: [{q: {user: 'u3'}, limit: 1}]}",
        // From the client's address no login is allowed any more.
        "{updateUser: 'u4', authenticationRestrictions: [{clientSource: ['10.0.0.1']}]}",
    ]
    .into_iter()
    .enumerate()
    {
        cases.push((revocation, guarded.user(&format!("u{number}"), "[{role: 'read', db: 'own'}]")));
    }
    // A find that takes a fifth of a second per document, and a tailable cursor that waits.
    let busy = "{find: 'c', filter: {$where: 'function() { const t = Date.now(); while (Date.now() - t < 200) {} }'}}";
    for waits in [true, false] {
        let mut running = Vec::new();
        for (revocation, mut connection) in cases {
            let command = if waits { waiting_get_more(&mut connection) } else { busy.to_owned() };
            let thread = std::thread::spawn(move || attempt(&mut connection, "own", &command));
            running.push((revocation, thread));
        }
        await_operations(&mut guarded.root, running.len());
        // An operation that waits is checked again when it wakes, and refused then.
        let is_end = |code| code == 11601 || waits && code == 13;
        let mut goes_on = None;
        for (revocation, thread) in running {
            run(&mut guarded.root, "admin", revocation);
            if revocation.contains("invalidate") {
                goes_on = Some(thread);
                continue;
            }
            // By itself, each operation would run for longer than this waits.
            wait_until(&format!("{revocation} ends an operation"), || thread.is_finished());
            let (code, message) = thread.join().expect("an answer");
            assert!(is_end(code), "{revocation}: {code} {message}");
        }
        let goes_on = goes_on.expect("a bystander");
        assert!(!goes_on.is_finished(), "nobody revoked what the bystander may do");
        run(&mut guarded.root, "admin", "{dropUser: 'bystander'}");
        assert!(is_end(goes_on.join().expect("an answer").0));
        if !waits {
            return;
        }
        // Second pass, for operations that compute.
        cases = Vec::new();
        for (name, revocation) in [
            ("bystander", "{invalidateUserCache: 1}"),
            ("u5", "{dropUser: 'u5'}"),
            ("u6", "{updateUser: 'u6', roles: []}"),
            ("u7", "{updateUser: 'u7', authenticationRestrictions: [{clientSource: ['10.0.0.1']}]}"),
        ] {
            cases.push((revocation, guarded.user(name, "[{role: 'read', db: 'own'}]")));
        }
    }
}
