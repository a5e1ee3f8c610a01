//! Faults of one member: files that cannot be written for a time, files that are held, and forged messages.

use super::{MAJORITY, Set, THREE, assert_ok, insert, whole};
use bunko_bson::ValueRef;
use bunko_testkit::patience::{PATIENCE, wait_until};
use bunko_testkit::shell;
use std::fs;

/// A set of three whose members are all up.
fn started() -> Set {
    let set = Set::start(3, &[]);
    assert_ok(&set.initiate(&THREE));
    set.primary(&[0]);
    (1..3).for_each(|member| set.wait_for_state(member, "SECONDARY"));
    set
}

/// The version of the configuration that a member uses.
fn version(set: &Set, member: usize) -> String {
    let reply = set.ask(member, "replSetGetConfig").expect("an answer");
    let config = reply.as_ref().get("config").and_then(ValueRef::as_document).expect("a configuration");
    shell::print(config.get("version").expect("a version"))
}

#[test]
fn a_configuration_that_cannot_be_kept_is_kept_once_the_directory_is_mended() {
    let set = started();
    // A change of the configuration needs a committed write of the primary's term.
    assert_ok(&insert(&mut set.peer(0), 0, MAJORITY));
    // The file is replaced by a new one, whose name is taken. The member may write it once more meanwhile.
    let path = set.directories[2].path().join("member");
    let aside = set.directories[2].path().join("aside");
    wait_until("a directory has the file's name", || {
        // It fails once the directory is there.
        let _ = fs::rename(&path, &aside);
        fs::create_dir_all(path.join("full")).is_ok()
    });
    let reply = set.ask(0, "replSetGetConfig").expect("an answer");
    let config = reply.as_ref().get("config").and_then(ValueRef::as_document).expect("a configuration");
    let raised =
        i64::from(shell::print(config.get("version").expect("a version")).parse::<i32>().expect("a number")) + 1;
    let next = shell::print(ValueRef::Document(config));
    let next = next.replacen(&format!("version: {}", raised - 1), &format!("version: {raised}"), 1);
    let next = next.replacen("priority: 1", "priority: 2", 1);
    assert_ok(&set.peer(0).run("admin", &format!("{{replSetReconfig: {next}}}")));
    set.servers[2].logged("configuration cannot be saved, and the member will try again");
    assert_eq!(version(&set, 2), (raised - 1).to_string());
    fs::remove_dir_all(&path).expect("removed");
    wait_until("the member uses the configuration", || version(&set, 2) == raised.to_string());
    assert_ok(&insert(&mut set.peer(0), 1, "{w: 3}"));
}

#[test]
fn writes_that_cannot_be_taken_back_are_taken_back_once_the_directory_is_mended() {
    let mut set = started();
    let mut peer = set.peer(0);
    assert_ok(&insert(&mut peer, 1, "{w: 3}"));
    set.servers[1].kill();
    set.servers[2].kill();
    let alone = insert(&mut peer, 2, "{w: 1}");
    if whole(&alone, "code") == 10107 {
        // On a busy machine it knew already that it has no majority, and has nothing to take back.
        return;
    }
    wait_until("the primary without a majority steps down", || {
        let hello = set.ask(0, "hello").expect("an answer");
        matches!(hello.as_ref().get("isWritablePrimary"), Some(ValueRef::Boolean(false)))
    });
    // Its log is the longest, so it would be elected again.
    assert_ok(&peer.run("admin", "{replSetFreeze: 600}"));
    // The directory for documents that are taken back cannot be made.
    let kept = set.directories[0].path().join("rollback");
    fs::write(&kept, b"a file").expect("written");
    for member in [1, 2] {
        set.servers[member] = set.server(member);
    }
    let next = set.primary(&[1, 2]);
    assert_ok(&insert(&mut set.peer(next), 3, MAJORITY));
    set.servers[0].logged("cannot be rolled back, and the member will try again");
    fs::remove_file(&kept).expect("removed");
    set.wait_for_state(0, "SECONDARY");
    assert_ok(&insert(&mut set.peer(next), 4, "{w: 3}"));
    set.assert_equal(&[next, 0, 3 - next], &["test"]);
}

#[test]
fn a_secondary_whose_files_are_held_changes_none_and_catches_up_afterwards() {
    let set = started();
    let mut primary = set.peer(0);
    assert_ok(&insert(&mut primary, 1, "{w: 3}"));
    let mut secondary = set.peer(2);
    let count = "{count: 'rows', $readPreference: {mode: 'secondary'}}";
    // It has the row before it applies it.
    wait_until("the secondary shows the row", || whole(&secondary.run("test", count), "n") == 1);
    assert_ok(&secondary.run("admin", "{fsync: 1, lock: true}"));
    let files = || {
        let log = fs::read_dir(set.directories[2].path().join("log")).expect("a directory");
        let mut all: Vec<_> =
            log.flatten().map(|entry| (entry.path(), fs::read(entry.path()).expect("read"))).collect();
        all.sort();
        all
    };
    let before = files();
    for id in 2..20 {
        assert_ok(&insert(&mut primary, id, MAJORITY));
    }
    let late = insert(&mut primary, 20, "{w: 3, wtimeout: 300}");
    assert_eq!(super::code_of_concern(&late), 64, "{late:?}");
    assert!(files() == before, "the log has changed");
    assert_eq!(whole(&secondary.run("test", count), "n"), 1);
    assert_ok(&secondary.run("admin", "{fsyncUnlock: 1}"));
    assert_ok(&insert(&mut primary, 21, "{w: 3}"));
    wait_until("the secondary has all rows", || whole(&secondary.run("test", count), "n") == 21);
}

#[test]
fn a_forged_term_that_would_end_all_elections_is_refused() {
    let mut set = started();
    let mut peer = set.peer(0);
    let config = set.ask(0, "replSetGetConfig").expect("an answer");
    let config = config.as_ref().get("config").and_then(ValueRef::as_document).expect("a configuration");
    let settings = config.get("settings").and_then(ValueRef::as_document).expect("settings");
    let id = shell::print(settings.get("replicaSetId").expect("an id"));
    let term = i64::MAX - 1;
    let message = format!(
        "{{from: 1, term: NumberLong(\"{term}\"), configuration: {{term: 1, version: 1}}, body: {{kind: 'heard', round: 0}}}}"
    );
    let forged = format!("{{replSetMember: 1, set: 'rs', setId: {id}, from: 1, to: 0, message: {message}}}");
    let refused = peer.run("admin", &forged);
    assert_eq!(whole(&refused, "code"), 2, "{refused:?}");
    assert_ok(&insert(&mut peer, 1, MAJORITY));
    set.servers[0].kill();
    let next = set.primary(&[1, 2]);
    assert_ok(&insert(&mut set.peer(next), 2, MAJORITY));
}

#[test]
fn a_default_read_concern_that_several_members_do_not_have_is_refused_when_the_set_begins() {
    let set = Set::start(2, &[]);
    let mut peer = set.peer(0);
    let defaults = "{setDefaultRWConcern: 1, defaultReadConcern: {level: 'majority'}}";
    assert_ok(&peer.run("admin", defaults));
    let refused = set.initiate(&["", ""]);
    assert_eq!(whole(&refused, "code"), 115, "{refused:?}");
    assert_ok(&peer.run("admin", "{setDefaultRWConcern: 1, defaultReadConcern: {level: 'local'}}"));
    assert_ok(&set.initiate(&["", ""]));
}

#[test]
fn a_causal_read_on_a_secondary_waits_for_its_time() {
    let set = started();
    let (mut primary, mut secondary) = (set.peer(0), set.peer(2));
    for id in 0..50 {
        let written = insert(&mut primary, id, MAJORITY);
        let time = shell::print(written.as_ref().get("operationTime").expect("a time"));
        let read = format!(
            "{{count: 'rows', query: {{_id: {id}}}, readConcern: {{level: 'local', afterClusterTime: {time}}}, \
             $readPreference: {{mode: 'secondary'}}}}"
        );
        assert_eq!(whole(&secondary.run("test", &read), "n"), 1, "row {id}");
    }
    // A time that never comes ends with the operation's.
    let read = "{count: 'rows', readConcern: {afterClusterTime: Timestamp(4000000000, 1)}, maxTimeMS: 100, \
                $readPreference: {mode: 'secondary'}}";
    let began = std::time::Instant::now();
    assert_ne!(whole(&secondary.run("test", read), "code"), 0);
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn writes_before_a_failure_wait_for_their_write_concern_too() {
    let mut set = Set::start(3, &[]);
    assert_ok(&set.initiate(&super::WITH_ARBITER));
    set.primary(&[0]);
    set.wait_for_state(1, "SECONDARY");
    // Without the arbiter's vote, the primary would step down when the secondary is killed.
    set.wait_for_state(2, "ARBITER");
    let mut peer = set.peer(0);
    assert_ok(&insert(&mut peer, 1, "{w: 2}"));
    assert_ok(&peer.run("test", "{insert: 'copy', documents: [{_id: 2}], writeConcern: {w: 2}}"));
    set.servers[1].kill();
    let merge = |id: i32, concern: &str| {
        let documents = format!("[{{_id: {id}}}, {{_id: 2}}]");
        let merge = "{$merge: {into: 'copy', whenMatched: 'fail'}}";
        format!(
            "{{aggregate: 1, pipeline: [{{$documents: {documents}}}, {merge}], cursor: {{}}, writeConcern: {concern}}}"
        )
    };
    let late = peer.run("test", &merge(3, "{w: 2, wtimeout: 300}"));
    assert_eq!((whole(&late, "code"), super::code_of_concern(&late)), (11000, 64), "{late:?}");
    assert_eq!(whole(&peer.run("test", "{count: 'copy', query: {_id: 3}}"), "n"), 1);
    // A failure without a write waits for nothing.
    let failed = peer.run("test", "{insert: 'copy', documents: 1, writeConcern: {w: 2, wtimeout: 300}}");
    assert!(whole(&failed, "code") != 0 && super::code_of_concern(&failed) == 0, "{failed:?}");
    let failed = peer.run("test", &merge(4, "{w: 1}"));
    assert_eq!((whole(&failed, "code"), super::code_of_concern(&failed)), (11000, 0), "{failed:?}");
}

#[test]
fn a_record_that_fits_into_no_message_travels_in_several() {
    let set = started();
    let mut peer = set.peer(0);
    let indexes = ["a", "b", "c"].map(|name| format!("{{key: {{v: 1, {name}: 1}}, name: '{name}'}}")).join(", ");
    assert_ok(&peer.run("test", &format!("{{createIndexes: 'rows', indexes: [{indexes}]}}")));
    // With its keys in each index, the document's record has 52 MB.
    let values: bunko_bson::ArrayBuf = (b'a'..b'n')
        .map(|letter| char::from(letter).to_string().repeat(1 << 20))
        .collect::<Vec<_>>()
        .iter()
        .map(String::as_str)
        .collect();
    let document = bunko_bson::DocumentBuf::new().with("_id", 1).with("v", &values);
    let documents: bunko_bson::ArrayBuf = [&document].into_iter().collect();
    let concern = bunko_bson::DocumentBuf::new().with("w", 3);
    let insert = bunko_bson::DocumentBuf::new().with("insert", "rows").with("documents", &documents);
    let uri = format!("mongodb://127.0.0.1:{}/?directConnection=true&socketTimeoutMS=60000", set.ports[0]);
    let mut connection = bunko_client::Connection::dial(&uri.parse().expect("a URI")).expect("connected");
    let reply = connection.run_command("test", insert.with("writeConcern", &concern).as_ref()).expect("a reply");
    assert_ok(&reply);
    set.assert_equal(&[0, 1, 2], &["test"]);
}
