//! Sessions belong to their users, who may choose equal UUIDs.

use super::{Guarded, ROOT, assert_refused, attempt, open, shown};
use crate::logins::run;
use crate::peer::binary;
use bunko_bson::ValueRef;
use bunko_client::Connection;
use bunko_testkit::process::{Server, temporary_dbpath};

/// A retryable write in a session with a fixed UUID.
fn insert_in_session(id: &str, number: i64) -> String {
    format!(
        "{{insert: 'c', documents: [{{_id: '{id}'}}], lsid: {{id: UUID('00112233-4455-4677-8899-aabbccddeeff')}}, \
         txnNumber: NumberLong('{number}')}}"
    )
}

#[test]
fn two_users_may_choose_the_same_session() {
    let mut guarded = Guarded::start();
    let roles = "[{role: 'readWrite', db: 'own'}]";
    let (mut one, mut other) = (guarded.user("one", roles), guarded.user("other", roles));
    // Transaction numbers of the two users are independent.
    for (connection, id, number) in [(&mut one, "one", 7), (&mut other, "other", 3)] {
        for _ in 0..2 {
            run(connection, "own", &insert_in_session(id, number));
        }
    }
    let listed = |connection: &mut Connection, option: &str| {
        let list = format!("{{aggregate: 'system.sessions', pipeline: [{{$listSessions: {option}}}], cursor: {{}}}}");
        let same = |session: &String| session.contains("00112233-4455-4677-8899-aabbccddeeff");
        crate::peer::first_batch(&run(connection, "config", &list)).into_iter().filter(same).collect::<Vec<_>>()
    };
    // SHA-256 of one@admin and other@admin.
    let [of_one, of_other] =
        ["lN+00bypwiuIX7JIbjzew5ji1xOkfiMzB/AUx2bfwdc=", "J9+vEw1mcAm3rUzN7ENWfW03OZDc+Fy25WTgEPP/PyU="];
    let all = listed(&mut guarded.root, "{allUsers: true}");
    assert_eq!(all.len(), 2, "{all:?}");
    for (connection, digest) in [(&mut one, of_one), (&mut other, of_other)] {
        let own = listed(connection, "{}");
        assert!(own.len() == 1 && own[0].contains(digest), "{own:?}");
    }
    let of_user = listed(&mut guarded.root, "{users: [{user: 'other', db: 'admin'}]}");
    assert!(of_user.len() == 1 && of_user[0].contains(of_other), "{of_user:?}");
    // Each user kills and ends only their own session; an administrator names the session's owner.
    let session =
        |digest: &str| format!("{{id: UUID('00112233-4455-4677-8899-aabbccddeeff'), uid: BinData(0, '{digest}')}}");
    for command in ["killSessions", "endSessions", "refreshSessions"] {
        assert_refused(&mut one, "admin", &format!("{{{command}: [{}]}}", session(of_other)));
    }
    assert_refused(&mut one, "own", &format!("{{find: 'c', lsid: {}}}", session(of_other)));
    run(&mut one, "own", &format!("{{find: 'c', lsid: {}}}", session(of_one)));
    let find = "{find: 'c', batchSize: 1, lsid: {id: UUID('00112233-4455-4677-8899-aabbccddeeff')}}";
    let mut cursors: Vec<_> = [&mut one, &mut other]
        .into_iter()
        .map(|connection| {
            let found = run(connection, "own", find);
            let cursor = found.as_ref().get("cursor").and_then(ValueRef::as_document).expect("a cursor");
            let id = cursor.get("id").and_then(bunko_bson::number::as_i64_exact).expect("an id");
            let more = format!("getMore: NumberLong('{id}'), collection: 'c', batchSize: 1");
            (connection, format!("{{{more}, lsid: {{id: UUID('00112233-4455-4677-8899-aabbccddeeff')}}}}"))
        })
        .collect();
    run(&mut guarded.root, "admin", "{killSessions: [{id: UUID('00112233-4455-4677-8899-aabbccddeeff')}]}");
    run(&mut guarded.root, "admin", &format!("{{killSessions: [{}]}}", session(of_other)));
    let codes: Vec<_> = cursors.iter_mut().map(|(connection, more)| attempt(connection, "own", more).0).collect();
    assert_eq!(codes, [0, 43]);
}

#[test]
fn writes_of_a_session_belong_to_its_user_after_a_start_too() {
    let dbpath = temporary_dbpath();
    let mut server = Server::start(&binary(), dbpath.path(), &["--auth"]).expect("started");
    run(&mut open(&server, "", ""), "admin", ROOT);
    let mut root = open(&server, "root:secret@", "");
    for name in ["one", "other"] {
        run(&mut root, "admin", &format!("{{createUser: '{name}', pwd: 'p', roles: ['readWriteAnyDatabase']}}"));
    }
    run(&mut open(&server, "one:p@", ""), "own", &insert_in_session("one", 7));
    drop(root);
    server.terminate();
    let server = Server::start(&binary(), dbpath.path(), &["--auth"]).expect("started");
    // The first user's write was done, so the retry is not executed: it would be a duplicate key.
    let again = run(&mut open(&server, "one:p@", ""), "own", &insert_in_session("one", 7));
    assert!(again.as_ref().get("writeErrors").is_none(), "{again:?}");
    // For the other user this number is new.
    for (id, number) in [("other", 7), ("later", 8)] {
        let written = run(&mut open(&server, "other:p@", ""), "own", &insert_in_session(id, number));
        assert!(written.as_ref().get("writeErrors").is_none(), "{written:?}");
    }
    let found = run(&mut open(&server, "root:secret@", ""), "own", "{find: 'c', sort: {_id: 1}}");
    assert_eq!(crate::peer::first_batch(&found), ["{_id: \"later\"}", "{_id: \"one\"}", "{_id: \"other\"}"]);
    // The stored transactions list both, each with its number.
    let list = "{find: 'transactions', projection: {_id: 0}, sort: {txnNum: 1}}";
    let listed = run(&mut open(&server, "root:secret@", ""), "config", list);
    assert_eq!(crate::peer::first_batch(&listed), ["{txnNum: NumberLong(7)}", "{txnNum: NumberLong(8)}"]);
}

#[test]
fn collections_of_sessions_are_read_by_who_may_read_them() {
    let mut guarded = Guarded::start();
    let mut writer = guarded.user("writer", "['readWriteAnyDatabase']");
    run(&mut writer, "own", &insert_in_session("one", 7));
    let mut monitor = guarded.user("monitor", "['clusterMonitor']");
    let mut reader = guarded.user("reader", "[{role: 'read', db: 'config'}]");
    let privileges = "[{resource: {db: 'config', collection: 'system.sessions'}, actions: ['find']}]";
    let role = format!("{{createRole: 'sessions', privileges: {privileges}, roles: []}}");
    run(&mut guarded.root, "admin", &role);
    let mut named = guarded.user("named", "['sessions']");
    let reads = |collection: &str| {
        [
            format!("{{find: '{collection}'}}"),
            format!("{{count: '{collection}'}}"),
            format!("{{distinct: '{collection}', key: '_id'}}"),
            format!("{{aggregate: '{collection}', pipeline: [], cursor: {{}}}}"),
            format!("{{aggregate: 'other', pipeline: [{{$unionWith: '{collection}'}}], cursor: {{}}}}"),
            format!("{{explain: {{find: '{collection}'}}}}"),
        ]
    };
    for read in reads("transactions") {
        for connection in [&mut guarded.root, &mut monitor, &mut reader] {
            run(connection, "config", &read);
        }
        assert_refused(&mut writer, "config", &read);
        assert_refused(&mut named, "config", &read);
    }
    // System collections need a privilege that names them, as in MongoDB.
    for read in reads("system.sessions") {
        for connection in [&mut guarded.root, &mut monitor, &mut reader, &mut writer] {
            assert_refused(connection, "config", &read);
        }
        if !read.contains("$unionWith") {
            run(&mut named, "config", &read);
        }
    }
    // A detour is refused, too.
    let from = "{$lookup: {from: {db: 'config', coll: 'transactions'}, pipeline: [], as: 'all'}}";
    let (code, _) = attempt(&mut writer, "own", &format!("{{aggregate: 'c', pipeline: [{from}], cursor: {{}}}}"));
    assert_ne!(code, 0);
    let count = run(&mut named, "config", "{count: 'system.sessions'}");
    assert!(shown(&count).starts_with("{n: "), "{count:?}");
    // A write that no user may do is refused also to root.
    let (code, message) = attempt(&mut guarded.root, "config", "{insert: 'transactions', documents: [{_id: 1}]}");
    assert_eq!(code, 115, "{message}");
    let listed = run(&mut reader, "config", "{listCollections: 1, nameOnly: true, authorizedCollections: true}");
    assert!(shown(&listed).contains("{name: \"transactions\""), "{listed:?}");
    assert!(!shown(&listed).contains("system.sessions"), "{listed:?}");
}

#[test]
fn sessions_are_killed_by_user() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{insert: 'c', documents: [{_id: 1}, {_id: 2}, {_id: 3}, {_id: 4}, {_id: 5}]}");
    let mut cursors = Vec::new();
    for (number, name) in ["one", "other"].into_iter().enumerate() {
        let mut connection = guarded.user(name, "[{role: 'read', db: 'own'}]");
        let session = format!("lsid: {{id: UUID('00112233-4455-4677-8899-aabbccddeef{number}')}}");
        let found = run(&mut connection, "own", &format!("{{find: 'c', batchSize: 1, {session}}}"));
        let id = found.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|cursor| cursor.get("id"));
        let Some(ValueRef::Int64(id)) = id else { panic!("no cursor: {found:?}") };
        let more = format!("{{getMore: NumberLong('{id}'), collection: 'c', batchSize: 1, {session}}}");
        cursors.push((connection, more));
    }
    let mut codes = |root: &mut Connection, kill: &str| {
        run(root, "admin", kill);
        cursors.iter_mut().map(|(connection, more)| attempt(connection, "own", more).0).collect::<Vec<_>>()
    };
    assert_eq!(codes(&mut guarded.root, "{killAllSessions: [{user: 'one', db: 'own'}]}"), [0, 0], "another database");
    assert_eq!(codes(&mut guarded.root, "{killAllSessions: [{user: 'one', db: 'admin'}]}"), [43, 0]);
    assert_eq!(codes(&mut guarded.root, "{killAllSessions: []}"), [43, 43]);
}
