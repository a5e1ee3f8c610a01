//! Every command, sent by a user of every role that each server has, for the role's database and for another.
//!
//! No command runs: each is sent with an API version that there is none of, which is looked at behind the door. The
//! answers are those of `matrix.txt`. After a change `REWRITE=1` writes it anew: read the difference.

use super::{Guarded, attempt};
use crate::run;
use bunko_bson::ValueRef;
use bunko_client::Connection;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What is sent of commands whose needs depend on more than a collection's name: a label, and the body. `DB` stands for
/// the database, and `OTHER` for one that no role of a database is for.
const BODIES: &[(&str, &str)] = &[
    ("aggregate", "{aggregate: 'c', pipeline: [], cursor: {}}"),
    ("aggregate $changeStream", "{aggregate: 'c', pipeline: [{$changeStream: {}}], cursor: {}}"),
    ("aggregate $collStats", "{aggregate: 'c', pipeline: [{$collStats: {}}], cursor: {}}"),
    ("aggregate $indexStats", "{aggregate: 'c', pipeline: [{$indexStats: {}}], cursor: {}}"),
    (
        "aggregate $lookup elsewhere",
        "{aggregate: 'c', pipeline: [{$lookup: {from: {db: 'OTHER', coll: 'c'}}}], cursor: {}}",
    ),
    ("aggregate $merge", "{aggregate: 'c', pipeline: [{$merge: 'd'}], cursor: {}}"),
    ("aggregate $out", "{aggregate: 'c', pipeline: [{$out: 'd'}], cursor: {}}"),
    ("aggregate $out elsewhere", "{aggregate: 'c', pipeline: [{$out: {db: 'OTHER', coll: 'd'}}], cursor: {}}"),
    ("aggregate $planCacheStats", "{aggregate: 'c', pipeline: [{$planCacheStats: {}}], cursor: {}}"),
    ("bulkWrite delete", "{bulkWrite: 1, ops: [{delete: 0}], nsInfo: [{ns: 'DB.c'}]}"),
    ("bulkWrite insert", "{bulkWrite: 1, ops: [{insert: 0}], nsInfo: [{ns: 'DB.c'}]}"),
    ("bulkWrite update", "{bulkWrite: 1, ops: [{update: 0}], nsInfo: [{ns: 'DB.c'}]}"),
    ("cloneCollectionAsCapped", "{cloneCollectionAsCapped: 'c', toCollection: 'd'}"),
    ("create", "{create: 'c'}"),
    ("create capped", "{create: 'c', capped: true}"),
    ("create view", "{create: 'v', viewOn: 'c'}"),
    (
        "createRole with privileges",
        "{createRole: 'r', roles: [], privileges: [{resource: {db: 'DB', collection: ''}, actions: ['find']}]}",
    ),
    ("createUser with roles", "{createUser: 'u', pwd: 'p', roles: ['read']}"),
    ("createUser with roles elsewhere", "{createUser: 'u', pwd: 'p', roles: [{role: 'read', db: 'OTHER'}]}"),
    ("currentOp", "{currentOp: 1}"),
    ("currentOp of one's own", "{currentOp: 1, $ownOps: true}"),
    ("dataSize", "{dataSize: 'DB.c'}"),
    ("explain", "{explain: {find: 'c'}}"),
    ("find", "{find: 'c'}"),
    ("find system.buckets.c", "{find: 'system.buckets.c'}"),
    ("find system.js", "{find: 'system.js'}"),
    ("find system.profile", "{find: 'system.profile'}"),
    ("find system.users", "{find: 'system.users'}"),
    ("find system.views", "{find: 'system.views'}"),
    ("findAndModify", "{findAndModify: 'c', update: {}}"),
    ("findAndModify remove", "{findAndModify: 'c', remove: true}"),
    (
        "grantPrivilegesToRole",
        "{grantPrivilegesToRole: 'r', privileges: [{resource: {db: 'DB', collection: ''}, actions: ['find']}]}",
    ),
    ("grantRolesToRole", "{grantRolesToRole: 'r', roles: ['read']}"),
    ("grantRolesToUser", "{grantRolesToUser: 'u', roles: ['read']}"),
    ("insert", "{insert: 'c', documents: []}"),
    ("insert bypassDocumentValidation", "{insert: 'c', documents: [], bypassDocumentValidation: true}"),
    ("insert system.users", "{insert: 'system.users', documents: []}"),
    ("listDatabases of all", "{listDatabases: 1, authorizedDatabases: false}"),
    ("mapReduce", "{mapReduce: 'c', out: 'd'}"),
    ("mapReduce inline", "{mapReduce: 'c', out: {inline: 1}}"),
    ("profile", "{profile: 1}"),
    ("profile asked for", "{profile: -1}"),
    ("renameCollection", "{renameCollection: 'DB.c', to: 'DB.d'}"),
    ("renameCollection elsewhere", "{renameCollection: 'DB.c', to: 'OTHER.d'}"),
    (
        "revokePrivilegesFromRole",
        "{revokePrivilegesFromRole: 'r', privileges: [{resource: {db: 'DB', collection: ''}, actions: ['find']}]}",
    ),
    ("revokeRolesFromRole", "{revokeRolesFromRole: 'r', roles: ['read']}"),
    ("revokeRolesFromUser", "{revokeRolesFromUser: 'u', roles: ['read']}"),
    ("rolesInfo", "{rolesInfo: 1}"),
    ("update", "{update: 'c', updates: []}"),
    ("update upsert", "{update: 'c', updates: [{q: {}, u: {}, upsert: true}]}"),
    ("updateUser customData", "{updateUser: 'u', customData: {}}"),
    ("updateUser pwd", "{updateUser: 'u', pwd: 'p'}"),
    ("updateUser roles", "{updateUser: 'u', roles: ['read']}"),
    ("usersInfo", "{usersInfo: 1}"),
    ("usersInfo forAllDBs", "{usersInfo: {forAllDBs: true}}"),
    ("validateDBMetadata", "{validateDBMetadata: 1, db: 'DB'}"),
];

/// One line of the table.
struct Row {
    label: String,
    body: String,
    is_for_admin: bool,
}

fn rows(root: &mut Connection) -> Vec<Row> {
    let listed = run(root, "admin", "{listCommands: 1}");
    let listed = listed.as_ref().get("commands").and_then(ValueRef::as_document).expect("commands");
    let mut rows = Vec::new();
    for command in listed {
        let described = command.value.as_document().expect("a description");
        let is_for_admin = matches!(described.get("adminOnly"), Some(ValueRef::Boolean(true)));
        let is_of_it = |label: &str| label.split(' ').next() == Some(command.name);
        let mut add = |label: &str, body: &str| {
            let body = body.strip_suffix('}').expect("a document");
            let body = format!("{body}, apiVersion: 'none'}}");
            rows.push(Row { label: label.to_owned(), body, is_for_admin });
        };
        let before = BODIES.iter().filter(|(label, _)| is_of_it(label)).map(|(label, body)| add(label, body)).count();
        if before == 0 {
            add(command.name, &format!("{{{}: 'c'}}", command.name));
        }
    }
    rows
}

/// A user of each role, by its name: of the roles of a database as that of `own`.
fn users(guarded: &mut Guarded) -> BTreeMap<String, Connection> {
    let names = |root: &mut Connection, database: &str| -> Vec<String> {
        let reply = run(root, database, "{rolesInfo: 1, showBuiltinRoles: true}");
        let roles = reply.as_ref().get("roles").and_then(ValueRef::as_array).expect("roles");
        let name = |role: ValueRef<'_>| role.as_document()?.get("role")?.as_str().map(str::to_owned);
        roles.iter().filter_map(name).filter(|name| name != "__system").collect()
    };
    let of_each = names(&mut guarded.root, "own");
    let all = names(&mut guarded.root, "admin");
    assert!(of_each.len() >= 5 && all.len() >= 18, "{of_each:?} {all:?}");
    let mut users = BTreeMap::new();
    for role in all {
        let database = if of_each.contains(&role) { "own" } else { "admin" };
        let user = guarded.user(&format!("of-{role}"), &format!("[{{role: '{role}', db: '{database}'}}]"));
        users.insert(role, user);
    }
    users.insert("(none)".to_owned(), guarded.user("none", "[]"));
    users
}

#[test]
fn every_command_is_allowed_to_its_roles_and_to_no_other() {
    let mut guarded = Guarded::start();
    let rows = rows(&mut guarded.root);
    let mut users = users(&mut guarded);
    let count = users.len();
    let mut text = String::new();
    for row in &rows {
        for (place, database) in [("own", "own"), ("other", "other")] {
            let against = if row.is_for_admin { "admin" } else { database };
            let body = row.body.replace("DB", database).replace("OTHER", "third");
            let mut allowed = Vec::new();
            for (role, connection) in &mut users {
                if attempt(connection, against, &body).0 != 13 {
                    allowed.push(role.as_str());
                }
            }
            let allowed = match allowed.len() {
                0 => "nobody".to_owned(),
                some if some == count => "everybody".to_owned(),
                _ => allowed.join(" "),
            };
            let _ = writeln!(text, "{} [{place}]: {allowed}", row.label);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rights/matrix.txt");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let expected = std::fs::read_to_string(&path).expect("a table");
    for (line, wanted) in text.lines().zip(expected.lines()) {
        assert_eq!(line, wanted, "the left is what was answered");
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}
