//! Every command, sent by users of every built-in role, for the role's database and for another, and once before a
//! login.
//!
//! No command is executed: each is sent with an unknown API version, which is checked after the privileges. The
//! expected results are those of `docs/reference/privileges.md`, and those that follow from its column `needs`, which
//! is written by hand. After a change `REWRITE=1` rewrites the columns of roles: read the difference.

mod needs;

use super::{Guarded, attempt, open};
use crate::logins::run;
use bunko_bson::ValueRef;
use bunko_client::Connection;
use needs::{Held, Needs};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Labels and bodies of commands whose needs depend on more than a collection's name. `'DB` stands for the database,
/// and `'OTHER` for a database that no database role covers.
const BODIES: &[(&str, &str)] = &[
    ("aggregate", "{aggregate: 'c', pipeline: [], cursor: {}}"),
    ("aggregate $changeStream", "{aggregate: 'c', pipeline: [{$changeStream: {}}], cursor: {}}"),
    ("aggregate $collStats", "{aggregate: 'c', pipeline: [{$collStats: {}}], cursor: {}}"),
    ("aggregate $indexStats", "{aggregate: 'c', pipeline: [{$indexStats: {}}], cursor: {}}"),
    ("aggregate $listCatalog", "{aggregate: 'c', pipeline: [{$listCatalog: {}}], cursor: {}}"),
    ("aggregate $listSearchIndexes", "{aggregate: 'c', pipeline: [{$listSearchIndexes: {}}], cursor: {}}"),
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
    ("filemd5", "{filemd5: 1, root: 'c'}"),
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

/// A logged-in user.
struct User {
    connection: Connection,
    held: Held,
}

impl User {
    fn new(mut connection: Connection) -> Self {
        let status = run(&mut connection, "admin", "{connectionStatus: 1, showPrivileges: true}");
        Self { held: Held::of(&status), connection }
    }
}

/// One user for each role, by the role's name. Roles of a database are those of `own`.
fn users(guarded: &mut Guarded) -> BTreeMap<String, User> {
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
        users.insert(role, User::new(user));
    }
    users.insert("(none)".to_owned(), User::new(guarded.user("none", "[]")));
    users
}

/// A line of the table in the documentation.
struct Documented {
    needs: String,
    columns: [String; 2],
}

const BEGINNING: &str = "|---|---|---|---|\n";

fn read(text: &str) -> BTreeMap<String, Documented> {
    let table = text.split_once(BEGINNING).expect("a table").1;
    let mut lines = BTreeMap::new();
    for line in table.lines() {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let [label, needs, own, other] = <[String; 4]>::try_from(cells).expect("four cells");
        lines.insert(label, Documented { needs, columns: [own, other] });
    }
    lines
}

#[test]
fn every_command_is_allowed_to_its_roles_and_to_no_other() {
    // With the commands for tests, too.
    let mut guarded = Guarded::start_with(&["--setParameter", "enableTestCommands=1"]);
    let rows = rows(&mut guarded.root);
    let mut users = users(&mut guarded);
    let mut anyone = open(&guarded.server, "", "");
    let count = users.len();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/privileges.md");
    let before = std::fs::read_to_string(&path).expect("a table");
    let documented = read(&before);
    let (mut wrong, mut table, mut cells) = (Vec::new(), String::new(), 0);
    for row in &rows {
        let Some(expected) = documented.get(&row.label) else {
            panic!("docs/reference/privileges.md needs a line for '{}'", row.label)
        };
        let needs = Needs::parse(&expected.needs);
        let mut columns = [String::new(), String::new()];
        for (number, database) in ["own", "other"].into_iter().enumerate() {
            let against = if row.is_for_admin { "admin" } else { database };
            let body = row.body.replace("'DB", &format!("'{database}")).replace("'OTHER", "'third");
            let mut allowed = Vec::new();
            for (role, user) in &mut users {
                cells += 1;
                let is_let_in = attempt(&mut user.connection, against, &body).0 != 13;
                if is_let_in {
                    allowed.push(role.as_str());
                }
                if is_let_in != needs.are_met(&user.held, database) {
                    wrong.push(format!("{} on {against} by {role}: let in: {is_let_in}", row.label));
                }
            }
            cells += 1;
            let is_let_in = attempt(&mut anyone, against, &body).0 != 13;
            if is_let_in != matches!(needs, Needs::Nothing) {
                wrong.push(format!("{} on {against} before a login: let in: {is_let_in}", row.label));
            }
            columns[number] = match allowed.len() {
                0 => "no role".to_owned(),
                some if some == count => "every user".to_owned(),
                _ => allowed.join(" "),
            };
        }
        if columns != expected.columns {
            wrong.push(format!("docs/reference/privileges.md says otherwise of {}: {columns:?}", row.label));
        }
        let [own, other] = columns;
        let _ = writeln!(table, "| {} | {} | {own} | {other} |", row.label, expected.needs);
    }
    println!("{cells} cells");
    if std::env::var_os("REWRITE").is_some() {
        let beginning = before.split_once(BEGINNING).expect("a table").0;
        std::fs::write(&path, format!("{beginning}{BEGINNING}{table}")).expect("written");
    }
    assert!(wrong.is_empty(), "a promise is broken: who is let in is not who is meant to be:\n{}", wrong.join("\n"));
    assert_eq!(rows.len(), documented.len(), "docs/reference/privileges.md has commands that there are not");
}
