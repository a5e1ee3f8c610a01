//! Transactions belong to the users who began them, and end with the privileges that they used.

use super::{ROOT, attempt, open};
use crate::logins::run;
use crate::peer::binary;
use bunko_testkit::process::{Server, temporary_dbpath};

const DIRECT: &str = "?directConnection=true";

const SESSION: &str = "lsid: {id: UUID('00112233-4455-4677-8899-aabbccddeeff')}, autocommit: false";

/// A command in the transaction with that number.
fn inside(command: &str, number: i64, more: &str) -> String {
    format!("{{{command}, {SESSION}, txnNumber: NumberLong('{number}'){more}}}")
}

#[test]
fn a_transaction_that_lost_a_privilege_is_not_committed() {
    let options = ["--auth", "--replSet", "rs0", "--replSetHost", "localhost:27017"];
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &options).expect("started");
    run(&mut open(&server, "", DIRECT), "admin", ROOT);
    let mut root = open(&server, "root:secret@", DIRECT);
    run(&mut root, "own", "{create: 'c'}");
    run(&mut root, "admin", "{createRole: 'lent', privileges: [], roles: []}");
    for (name, more) in [("writer", ", 'lent'"), ("other", "")] {
        let roles = format!("[{{role: 'readWrite', db: 'own'}}{more}]");
        run(&mut root, "admin", &format!("{{createUser: '{name}', pwd: 'p', roles: {roles}}}"));
    }
    let mut user = open(&server, "writer:p@", DIRECT);
    let mut other = open(&server, "other:p@", DIRECT);
    let commit = |number| inside("commitTransaction: 1", number, "");
    let lent = "[{resource: {db: 'own', collection: 'd'}, actions: ['find']}]";
    let cases = [
        // No privilege is revoked, so the transaction continues.
        ("{invalidateUserCache: 1}".to_owned(), 0),
        (format!("{{grantPrivilegesToRole: 'lent', privileges: {lent}}}"), 0),
        (format!("{{revokePrivilegesFromRole: 'lent', privileges: {lent}}}"), 251),
        ("{revokeRolesFromUser: 'writer', roles: [{role: 'readWrite', db: 'own'}]}".to_owned(), 251),
    ];
    for (number, (change, expected)) in (1..).zip(cases) {
        let insert = format!("insert: 'c', documents: [{{_id: {number}}}]");
        assert_eq!(attempt(&mut user, "own", &inside(&insert, number, ", startTransaction: true")).0, 0);
        // To other users it does not exist: with that session UUID another user has another session, without a
        // transaction.
        let foreign = inside("insert: 'c', documents: [{_id: 'other'}]", number, "");
        assert_eq!(attempt(&mut other, "own", &foreign).0, 251);
        for end in ["commitTransaction: 1", "abortTransaction: 1"] {
            assert_eq!(attempt(&mut other, "admin", &inside(end, number, "")).0, 251);
        }
        run(&mut root, "admin", &change);
        let (code, message) = attempt(&mut user, "admin", &commit(number));
        assert_eq!(code, expected, "{change}: {message}");
    }
    // A privilege that was granted after the beginning and revoked before the end.
    run(&mut root, "admin", "{grantRolesToUser: 'other', roles: ['lent']}");
    assert_eq!(attempt(&mut other, "own", "{find: 'c'}").0, 0);
    let mut begun = |database: &str, command: &str, more: &str| {
        let command = inside(command, 1, more).replace("ccddeeff", "ccddee00");
        attempt(&mut other, database, &command)
    };
    let first = begun("own", "insert: 'c', documents: [{_id: 'begun'}]", ", startTransaction: true");
    assert_eq!(first, (0, String::new()));
    let grown = "[{resource: {db: 'own', collection: 'system.js'}, actions: ['find']}, \
                 {resource: {db: 'more', collection: 'd'}, actions: ['find']}]";
    run(&mut root, "admin", &format!("{{grantPrivilegesToRole: 'lent', privileges: {grown}}}"));
    assert_eq!(begun("own", "insert: 'c', documents: [{_id: 'after'}]", ""), (0, String::new()));
    run(&mut root, "admin", &format!("{{revokePrivilegesFromRole: 'lent', privileges: {grown}}}"));
    assert_eq!(begun("admin", "commitTransaction: 1", "").0, 251);
    let kept = run(&mut root, "own", "{find: 'c', sort: {_id: 1}}");
    assert_eq!(crate::peer::first_batch(&kept), ["{_id: 1}", "{_id: 2}"]);
}
