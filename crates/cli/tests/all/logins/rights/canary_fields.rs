//! A field with a name like a secret's, in any command, is never shown: in no error, log line, audit event, profile
//! entry or list of operations and cursors.

use super::{attempt, open, shown};
use crate::logins::run;
use crate::peer::binary;
use bunko_bson::ValueRef;
use bunko_client::Connection;
use bunko_testkit::process::{Server, temporary_dbpath};
use std::path::Path;
use std::process::Command;

const CANARY: &str = "canary-in-a-field";

/// Names of secrets, and misspelt ones.
const FIELDS: [&str; 12] = [
    "pwd",
    "password",
    "passwd",
    "newPassword",
    "clientSecret",
    "key",
    "accessToken",
    "credentials",
    "storedKey",
    "server_key",
    "payload",
    "speculativeAuthenticate",
];

/// A server with every log enabled, which records every operation.
fn start(dbpath: &Path, log: &Path) -> Server {
    let mut command = Command::new(binary());
    command.args(["serve", "--port", "0", "--no-unix-socket", "--slowms", "0", "--auth", "--auditDestination", "file"]);
    command.arg("--auditPath").arg(dbpath.join("audit.json")).arg("--dbpath").arg(dbpath).arg("--logpath").arg(log);
    command.env("MONGO_INITDB_ROOT_USERNAME", "root").env("MONGO_INITDB_ROOT_PASSWORD", "secret");
    Server::spawn_with_log(command, log).expect("started")
}

/// All commands, except those that would end the server or the test.
fn commands(root: &mut Connection) -> Vec<String> {
    let reply = run(root, "admin", "{listCommands: 1}");
    let all = reply.as_ref().get("commands").and_then(ValueRef::as_document).expect("commands");
    let names = all.iter().map(|command| command.name.to_owned());
    names.filter(|name| !matches!(name.as_str(), "shutdown" | "killAllSessions" | "logRotate")).collect()
}

fn send(client: &mut Connection, database: &str, command: &str) {
    let (_, message) = attempt(client, database, command);
    assert!(!message.contains(CANARY), "{command}: {message}");
}

/// Commands with secrets at deeper levels.
fn send_deeper(root: &mut Connection) {
    for command in [
        format!("{{createUser: 'a', pwd: 'p', roles: [], customData: {{apiToken: '{CANARY}'}}}}"),
        format!("{{createUser: 'b', pasword: '{CANARY}', roles: []}}"),
        format!("{{createUser: {{user: 'b', pwd: '{CANARY}'}}}}"),
        format!("{{createUser: 'b', pwd: 'p', roles: [{{role: 'read', db: 'test', password: '{CANARY}'}}]}}"),
        format!("{{updateUser: 'a', passwrd: '{CANARY}'}}"),
        format!("{{setParameter: 1, ldapQueryPassword: '{CANARY}'}}"),
        format!("{{setParameter: 1, logLevel: {{secret: '{CANARY}'}}}}"),
        format!("{{setClusterParameter: {{a: {{password: '{CANARY}'}}}}}}"),
        format!("{{applyOps: [{{op: 'i', ns: 'admin.system.users', o: {{_id: 'x.y', pwd: '{CANARY}'}}}}]}}"),
        format!("{{applyOps: [{{op: 'c', ns: 'admin.$cmd', o: {{createUser: 'b', pwd: '{CANARY}'}}}}]}}"),
        format!("{{insert: 'tempusers', documents: [{{_id: 't.u', credentials: {{a: '{CANARY}'}}}}]}}"),
        format!(
            "{{update: 'tempusers', updates: [{{q: {{pwd: '{CANARY}'}}, u: {{$set: {{password: '{CANARY}'}}}}}}]}}"
        ),
        format!("{{delete: 'tempusers', deletes: [{{q: {{'a.secret': '{CANARY}'}}, limit: 1}}]}}"),
        format!(
            "{{bulkWrite: 1, ops: [{{delete: 0, filter: {{pwd: '{CANARY}'}}}}], nsInfo: [{{ns: 'admin.tempusers'}}]}}"
        ),
        format!("{{findAndModify: 'tempusers', query: {{pwd: '{CANARY}'}}, remove: true}}"),
        format!("{{find: 'system.users', filter: {{pwd: {{$ne: '{CANARY}'}}}}, batchSize: 0}}"),
        format!(
            "{{aggregate: 'system.users', pipeline: [{{$match: {{pwd: {{$ne: '{CANARY}'}}}}}}], cursor: {{batchSize: 0}}}}"
        ),
        format!("{{explain: {{find: 'system.users', filter: {{pwd: '{CANARY}'}}}}}}"),
        format!("{{explain: {{updateUser: 'a', pasword: '{CANARY}'}}}}"),
    ] {
        send(root, "admin", &command);
    }
}

#[test]
fn no_field_shows_a_secret() {
    let (dbpath, out) = (temporary_dbpath(), temporary_dbpath());
    let log = out.path().join("server.log");
    let mut server = start(dbpath.path(), &log);
    let mut root = open(&server, "root:secret@", "");
    run(&mut root, "admin", "{createUser: 'nobody', pwd: 'p', roles: []}");
    run(&mut root, "admin", "{profile: 2}");
    let mut nobody = open(&server, "nobody:p@", "");
    for name in commands(&mut root) {
        for (number, field) in FIELDS.iter().enumerate() {
            // The name of a requested field is not a secret.
            if name == "distinct" && *field == "key" {
                continue;
            }
            let value = if number % 2 == 0 { format!("'{CANARY}'") } else { format!("{{a: ['{CANARY}']}}") };
            let command = format!("{{{name}: 'c', {field}: {value}}}");
            send(&mut nobody, "admin", &command);
            send(&mut root, "admin", &command);
        }
    }
    send_deeper(&mut root);
    for command in [
        "{getLog: 'global'}",
        "{getCmdLineOpts: 1}",
        "{getParameter: '*'}",
        "{aggregate: 1, pipeline: [{$currentOp: {allUsers: true, idleConnections: true, idleCursors: true}}], cursor: {}}",
        "{find: 'system.profile', batchSize: 100000, singleBatch: true}",
    ] {
        let reply = shown(&run(&mut root, "admin", command));
        assert!(!reply.contains(CANARY), "{command}: {}", around(&reply));
    }
    server.terminate();
    for file in [log, dbpath.path().join("audit.json")] {
        let text = std::fs::read_to_string(&file).expect("readable");
        assert!(text.contains("updateUser") && !text.contains(CANARY), "{}: {}", file.display(), around(&text));
    }
}

/// The text before and after the canary.
fn around(text: &str) -> &str {
    let at = text.find(CANARY).unwrap_or_default();
    let begin = (0..=at.saturating_sub(300)).rev().find(|begin| text.is_char_boundary(*begin)).unwrap_or_default();
    &text[begin..(at + CANARY.len()).min(text.len())]
}
