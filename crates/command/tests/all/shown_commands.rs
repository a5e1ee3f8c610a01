//! Commands as `currentOp`, the profiler, the log and the audit show them: without secrets.

use bunko_authority::Shown;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_command::{Request, find_command};
use bunko_request::secret_names::shown_statement;
use bunko_testkit::shell;

fn document(text: &str) -> DocumentBuf {
    shell::parse_document(text).expect("a document")
}

/// Shows a command in both forms: before and after its fields are checked.
fn shown(database: &str, command: &str) -> [String; 2] {
    let body = document(command);
    let request = Request::new(database, body.as_ref(), None);
    let entry = find_command(request.name()).expect("a command");
    [Shown::of_any(entry, &request), Shown::of_admitted(entry, &request)]
        .map(|shown| shell::print(ValueRef::Document(shown.as_ref())))
}

#[test]
fn no_secret_is_shown() {
    for (command, expected) in [
        ("{createUser: 'u', pwd: 'canary', roles: []}", "{createUser: \"u\", pwd: \"xxx\", roles: []}"),
        // A mistyped field.
        ("{createUser: 'u', pasword: 'canary', roles: []}", "{createUser: \"u\", pasword: \"xxx\", roles: []}"),
        ("{createUser: {user: 'u', pwd: 'canary'}}", "{createUser: {user: \"u\", pwd: \"xxx\"}}"),
        (
            "{updateUser: 'u', customData: {apiToken: 'canary', team: 'a'}}",
            "{updateUser: \"u\", customData: {apiToken: \"xxx\", team: \"a\"}}",
        ),
        (
            "{saslStart: 1, mechanism: 'PLAIN', payload: 'canary'}",
            "{saslStart: 1, mechanism: \"PLAIN\", payload: \"xxx\"}",
        ),
        ("{setParameter: 1, ldapQueryPassword: 'canary'}", "{setParameter: 1, ldapQueryPassword: \"xxx\"}"),
        ("{setParameter: 1, a: {b: [{pwd: 'canary'}]}}", "{setParameter: 1, a: {b: [{pwd: \"xxx\"}]}}"),
        (
            "{hello: 1, client: {driver: {name: 'd'}}, speculativeAuthenticate: {payload: 'canary'}, password: 'canary'}",
            "{hello: 1, client: {driver: {name: \"d\"}}, speculativeAuthenticate: \"xxx\", password: \"xxx\"}",
        ),
        (
            "{applyOps: [{op: 'i', ns: 'admin.system.users', o: {credentials: {a: 'canary'}}}]}",
            "{applyOps: [{op: \"i\", ns: \"admin.system.users\", o: {credentials: \"xxx\"}}]}",
        ),
        (
            "{find: 'system.users', filter: {'credentials.SCRAM-SHA-1.storedKey': 'canary'}}",
            "{find: \"system.users\", filter: {\"credentials.SCRAM-SHA-1.storedKey\": \"xxx\"}}",
        ),
        (
            "{explain: {createUser: 'u', pwd: 'canary'}, verbosity: 'queryPlanner'}",
            "{explain: {createUser: \"u\", pwd: \"xxx\"}, verbosity: \"queryPlanner\"}",
        ),
        ("{explain: {explain: {createUser: 'u', pwd: 'canary'}}}", "{explain: {explain: \"xxx\"}}"),
    ] {
        assert_eq!(shown("admin", command), [expected, expected], "{command}");
    }
    let refused = document("{ping: 1, password: 'canary', other: 1}");
    let request = Request::new("test", refused.as_ref(), None);
    let shown = Shown::of_any(find_command("ping").expect("a command"), &request);
    assert_eq!(shown.as_ref(), document("{ping: 1, password: 'xxx', other: 1}").as_ref());
}

#[test]
fn no_secret_of_users_is_shown_in_other_databases() {
    for (command, expected) in [
        (
            "{find: 'system.users', filter: {'credentials.SCRAM-SHA-256.storedKey': 'canary'}}",
            "{find: \"system.users\", filter: {\"credentials.SCRAM-SHA-256.storedKey\": \"xxx\"}}",
        ),
        (
            "{insert: 'system.users', documents: [{credentials: {k: 'canary'}}]}",
            "{insert: \"system.users\", documents: [{credentials: \"xxx\"}]}",
        ),
        (
            "{aggregate: 'system.users', pipeline: [{$match: {pwd: 'canary'}}], cursor: {}}",
            "{aggregate: \"system.users\", pipeline: [{$match: {pwd: \"xxx\"}}], cursor: {}}",
        ),
        (
            "{bulkWrite: 1, ops: [{insert: 0, document: {pwd: 'canary'}}], nsInfo: [{ns: 'test.system.users'}]}",
            "{bulkWrite: 1, ops: [{insert: 0, document: {pwd: \"xxx\"}}], nsInfo: [{ns: \"test.system.users\"}]}",
        ),
        (
            "{usersInfo: {user: 'u', db: 'a', pwd: 'canary'}, filter: {pwd: 'canary'}}",
            "{usersInfo: {user: \"u\", db: \"a\", pwd: \"xxx\"}, filter: {pwd: \"xxx\"}}",
        ),
        ("{usersInfo: [{user: 'u', db: 'a', pwd: 'canary'}]}", "{usersInfo: [{user: \"u\", db: \"a\", pwd: \"xxx\"}]}"),
        (
            "{rolesInfo: {role: 'r', db: 'a', secret: 'canary'}}",
            "{rolesInfo: {role: \"r\", db: \"a\", secret: \"xxx\"}}",
        ),
    ] {
        assert_eq!(shown("test", command), [expected, expected], "{command}");
    }
    let statement = document("{q: {pwd: 'canary'}, u: {$set: {pwd: 'canary'}}}");
    let hidden = document("{q: {pwd: 'xxx'}, u: {$set: {pwd: 'xxx'}}}");
    assert_eq!(shown_statement("test.system.users", statement.clone()), hidden);
    assert_eq!(shown_statement("test.users", statement.clone()), statement);
}

#[test]
fn values_that_are_not_secrets_are_shown() {
    for command in [
        "{find: \"c\", filter: {token: \"t\", password: \"p\"}}",
        "{distinct: \"c\", key: \"password\"}",
        "{insert: \"c\", documents: [{pwd: \"p\"}]}",
        "{createIndexes: \"c\", indexes: [{key: {token: 1}, name: \"token_1\"}]}",
        "{applyOps: [{op: \"i\", ns: \"test.c\", o: {_id: 1, token: \"t\"}}]}",
    ] {
        assert_eq!(shown("test", command), [command, command]);
    }
}
