//! Users cannot gain more than they were granted: neither by granting it, nor by writing to the collections of users
//! and roles.

use super::{Guarded, attempt};
use crate::logins::run;

/// The beginning of the command that creates a user.
const CREATE: &str = "{createUser: 'x', pwd: 'p', mechanisms: ['SCRAM-SHA-256'], roles: ";

/// Each command is refused with code 13 for a user with these roles.
fn assert_all_refused(guarded: &mut Guarded, name: &str, roles: &str, commands: &[(&str, &str)]) {
    let mut user = guarded.user(name, roles);
    for (database, command) in commands {
        let (code, message) = attempt(&mut user, database, command);
        assert_eq!(code, 13, "{roles}: {command} on {database}: {message}");
    }
}

#[test]
fn no_user_grants_more_than_they_hold() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "other", "{createUser: 'victim', pwd: 'p', roles: []}");
    run(&mut guarded.root, "own", "{createRole: 'harmless', privileges: [], roles: []}");
    run(&mut guarded.root, "own", "{createUser: 'friend', pwd: 'p', roles: []}");
    let root = "[{role: 'root', db: 'admin'}]";
    let elsewhere = "[{role: 'readWrite', db: 'other'}]";
    let privileges = |resource: &str| format!("[{{resource: {resource}, actions: ['find']}}]");
    let mut commands = Vec::new();
    for roles in [root, elsewhere, "[{role: 'read', db: 'own'}, {role: 'readAnyDatabase', db: 'admin'}]"] {
        commands.push(("own", format!("{CREATE}{roles}}}")));
        commands.push(("own", format!("{{grantRolesToUser: 'friend', roles: {roles}}}")));
        commands.push(("own", format!("{{updateUser: 'friend', roles: {roles}}}")));
        commands.push(("own", format!("{{grantRolesToRole: 'harmless', roles: {roles}}}")));
        commands.push(("own", format!("{{createRole: 'new', privileges: [], roles: {roles}}}")));
        commands.push(("own", format!("{{updateRole: 'harmless', roles: {roles}}}")));
    }
    for resource in
        ["{cluster: true}", "{anyResource: true}", "{db: '', collection: ''}", "{db: 'other', collection: ''}"]
    {
        let privileges = privileges(resource);
        commands.push(("own", format!("{{createRole: 'new', privileges: {privileges}, roles: []}}")));
        commands.push(("own", format!("{{grantPrivilegesToRole: 'harmless', privileges: {privileges}}}")));
        commands.push(("own", format!("{{updateRole: 'harmless', privileges: {privileges}}}")));
    }
    for command in [
        "{updateUser: 'victim', pwd: 'q'}",
        "{dropUser: 'victim'}",
        "{grantRolesToUser: 'victim', roles: ['read']}",
        "{usersInfo: 'victim', showCredentials: true}",
        "{dropAllUsersFromDatabase: 1}",
    ] {
        commands.push(("other", command.to_owned()));
    }
    let commands: Vec<_> = commands.iter().map(|(database, command)| (*database, command.as_str())).collect();
    assert_all_refused(&mut guarded, "keeper", "[{role: 'userAdmin', db: 'own'}]", &commands);
    assert_all_refused(&mut guarded, "owner", "[{role: 'dbOwner', db: 'own'}]", &commands);
    // Within the database it is allowed.
    let mut keeper = guarded.log_in("keeper");
    run(&mut keeper, "own", &format!("{CREATE}['readWrite']}}"));
    // A role that inherits itself is refused, over any number of steps.
    for (role, inherited) in [("a", "[]"), ("b", "['a']"), ("c", "['b']")] {
        run(&mut keeper, "own", &format!("{{createRole: '{role}', privileges: [], roles: {inherited}}}"));
    }
    for inherited in ["a", "c"] {
        let (code, message) =
            attempt(&mut keeper, "own", &format!("{{grantRolesToRole: 'a', roles: ['{inherited}']}}"));
        assert_eq!(code, 87, "{message}");
    }
}

#[test]
fn no_client_writes_to_the_collections_of_users_and_roles() {
    let mut guarded = Guarded::start();
    run(&mut guarded.root, "own", "{insert: 'c', documents: [{_id: 'admin.root'}]}");
    let lookup = "[{$lookup: {from: {db: 'admin', coll: 'system.users'}, pipeline: [], as: 'l'}}]";
    let commands = [
        ("admin", "{insert: 'system.users', documents: [{_id: 'admin.x', user: 'x', db: 'admin'}]}".to_owned()),
        ("admin", "{insert: 'system.roles', documents: [{_id: 'admin.x', role: 'x', db: 'admin'}]}".to_owned()),
        ("admin", "{update: 'system.users', updates: [{q: {}, u: {$set: {roles: []}}, multi: true}]}".to_owned()),
        ("admin", "{delete: 'system.users', deletes: [{q: {}, limit: 0}]}".to_owned()),
        ("admin", "{findAndModify: 'system.users', query: {}, update: {$set: {roles: []}}}".to_owned()),
        ("admin", "{drop: 'system.users'}".to_owned()),
        ("admin", "{find: 'system.users'}".to_owned()),
        ("admin", "{count: 'system.users'}".to_owned()),
        ("admin", "{distinct: 'system.users', key: 'credentials'}".to_owned()),
        ("admin", "{create: 'v', viewOn: 'system.users'}".to_owned()),
        ("admin", "{collMod: 'system.users', validator: {}}".to_owned()),
        ("admin", "{createIndexes: 'system.users', indexes: [{key: {a: 1}, name: 'a'}]}".to_owned()),
        ("admin", "{convertToCapped: 'system.users', size: 1000}".to_owned()),
        ("admin", "{cloneCollectionAsCapped: 'system.users', toCollection: 'x', size: 1000}".to_owned()),
        ("admin", "{renameCollection: 'own.c', to: 'admin.system.users', dropTarget: true}".to_owned()),
        ("admin", "{renameCollection: 'admin.system.users', to: 'own.users'}".to_owned()),
        ("admin", "{bulkWrite: 1, ops: [{insert: 0, document: {}}], nsInfo: [{ns: 'admin.system.users'}]}".to_owned()),
        ("admin", "{applyOps: [{op: 'i', ns: 'admin.system.users', o: {_id: 'admin.x'}}]}".to_owned()),
        ("admin", "{aggregate: 'system.users', pipeline: [], cursor: {}}".to_owned()),
        ("own", "{aggregate: 'c', pipeline: [{$out: {db: 'admin', coll: 'system.users'}}], cursor: {}}".to_owned()),
        (
            "own",
            "{aggregate: 'c', pipeline: [{$merge: {into: {db: 'admin', coll: 'system.roles'}}}], cursor: {}}"
                .to_owned(),
        ),
        ("own", format!("{{aggregate: 'c', pipeline: {lookup}, cursor: {{}}}}")),
        ("own", format!("{{aggregate: 'c', pipeline: [{{$facet: {{a: {lookup}}}}}], cursor: {{}}}}")),
        (
            "own",
            "{mapReduce: 'c', map: Code('x'), reduce: Code('y'), out: {replace: 'system.users', db: 'admin'}}"
                .to_owned(),
        ),
    ];
    let commands: Vec<_> = commands.iter().map(|(database, command)| (*database, command.as_str())).collect();
    let roles = "['readWriteAnyDatabase', 'dbAdminAnyDatabase']";
    assert_all_refused(&mut guarded, "writer", roles, &commands);
    // Even listing users is refused.
    let mut writer = guarded.log_in("writer");
    for command in ["{usersInfo: 1}", "{usersInfo: {forAllDBs: true}}", "{usersInfo: 'root', showCredentials: true}"] {
        assert_eq!(attempt(&mut writer, "admin", command).0, 13, "{command}");
    }
    run(&mut guarded.root, "admin", "{find: 'c'}");
    guarded.log_in("writer");
}
