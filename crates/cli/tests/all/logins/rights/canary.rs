//! A password does not appear anywhere, whatever was done with it: on disk, in the logs, in replies, in files and
//! messages of the tools.

use super::{MEASURE, attempt, bunko, has_measured, open, shown};
use crate::logins::{assert_nowhere, run};
use crate::peer::binary;
use bunko_bson::base64;
use bunko_client::Connection;
use bunko_testkit::process::{Server, temporary_dbpath};
use std::path::Path;
use std::process::Command;

/// The password of the first user, which comes from the environment, and of users that commands create.
const PASSWORD: &str = "canary-in-a-mine";

/// A member of a replica set, which keeps an oplog, with every log enabled.
fn start(dbpath: &Path, log: &Path) -> Server {
    let mut command = Command::new(binary());
    command.args(["serve", "--port", "0", "--no-unix-socket", "--slowms", "0", "--auth", "--log-format", "text"]);
    command.args(["--replSet", "rs", "--replSetHost", "localhost:27017", "--auditDestination", "file"]);
    command.arg("--auditPath").arg(dbpath.join("audit.json")).arg("--dbpath").arg(dbpath);
    command.arg("--logpath").arg(log);
    command.env("MONGO_INITDB_ROOT_USERNAME", "root").env("MONGO_INITDB_ROOT_PASSWORD", PASSWORD);
    Server::spawn_with_log(command, log).expect("started")
}

/// Sends the password wherever a command takes one, and in places where none is taken.
fn send_it_everywhere(root: &mut Connection) {
    let plain = base64::encode(format!("\0u\0{PASSWORD}").as_bytes());
    for command in [
        format!("{{createUser: 'u', pwd: '{PASSWORD}', roles: ['readWriteAnyDatabase']}}"),
        format!("{{createUser: 'u', pwd: '{PASSWORD}', roles: []}}"),
        format!("{{createUser: 'v', pwd: '{PASSWORD}', rolls: []}}"),
        format!("{{createUser: 'v', pwd: ['{PASSWORD}'], roles: []}}"),
        format!("{{createUser: 'v', pwd: '{PASSWORD}', roles: ['none']}}"),
        format!("{{createUser: 'v', pwd: '{PASSWORD}', pwd: '{PASSWORD}', roles: []}}"),
        format!("{{updateUser: 'u', pwd: '{PASSWORD}', mechanisms: ['SCRAM-SHA-1', 'SCRAM-SHA-256']}}"),
        format!("{{updateUser: 'nobody', pwd: '{PASSWORD}'}}"),
        format!("{{explain: {{createUser: 'v', pwd: '{PASSWORD}', roles: []}}}}"),
        format!("{{explain: {{explain: {{createUser: 'v', pwd: '{PASSWORD}', roles: []}}}}}}"),
        format!("{{saslStart: 1, mechanism: 'PLAIN', payload: '{plain}'}}"),
        format!("{{saslStart: 1, mechanism: 'SCRAM-SHA-256', payload: '{PASSWORD}'}}"),
        format!(
            "{{authenticate: 1, mechanism: 'MONGODB-CR', user: 'u', pwd: '{PASSWORD}', nonce: 'x', key: '{PASSWORD}'}}"
        ),
        format!(
            "{{hello: 1, speculativeAuthenticate: {{saslStart: 1, mechanism: 'PLAIN', payload: '{plain}', db: '{PASSWORD}'}}}}"
        ),
    ] {
        let (_, message) = attempt(root, "admin", &command);
        assert!(!message.contains(PASSWORD), "{command}: {message}");
    }
}

#[test]
fn a_password_is_found_nowhere() {
    let (dbpath, out) = (temporary_dbpath(), temporary_dbpath());
    let log = out.path().join("server.log");
    let mut server = start(dbpath.path(), &log);
    let mut root = open(&server, &format!("root:{PASSWORD}@"), "?directConnection=true");
    run(&mut root, "admin", "{profile: 2}");
    run(&mut root, "own", "{profile: 2}");
    send_it_everywhere(&mut root);
    for options in ["", "&authMechanism=SCRAM-SHA-1", "&authMechanism=SCRAM-SHA-256"] {
        let mut user = open(&server, &format!("u:{PASSWORD}@"), &format!("?directConnection=true{options}"));
        run(&mut user, "own", "{insert: 'c', documents: [{}]}");
        let (code, message) = attempt(&mut user, "own", &format!("{{createUser: 'x', pwd: '{PASSWORD}', roles: []}}"));
        assert!(code == 13 && !message.contains(PASSWORD), "{code} {message}");
    }
    for (database, command) in [
        ("admin", "{getLog: 'global'}"),
        ("admin", "{getLog: 'startupWarnings'}"),
        ("admin", "{getCmdLineOpts: 1}"),
        ("admin", "{getParameter: '*'}"),
        ("admin", "{serverStatus: 1}"),
        ("admin", "{currentOp: 1, $all: true}"),
        ("admin", "{aggregate: 1, pipeline: [{$currentOp: {allUsers: true, idleConnections: true}}], cursor: {}}"),
        ("admin", "{usersInfo: {forAllDBs: true}, showCredentials: true, showPrivileges: false}"),
        ("admin", "{connectionStatus: 1, showPrivileges: true}"),
        ("admin", "{find: 'system.profile', batchSize: 10000}"),
        ("own", "{find: 'system.profile', batchSize: 10000}"),
        ("admin", "{find: 'system.users'}"),
        ("local", "{find: 'oplog.rs', batchSize: 10000}"),
    ] {
        let reply = shown(&run(&mut root, database, command));
        assert!(!reply.contains(PASSWORD), "{command}: {reply}");
    }
    tools_do_not_keep_it(&server, out.path());
    server.terminate();
    assert!(std::fs::read_to_string(log).expect("readable").contains("createUser"));
    assert_nowhere(dbpath.path(), PASSWORD);
    assert_nowhere(out.path(), PASSWORD);
}

/// Dumps, restores and measures into `out`; the tools' messages do not contain the password, even if it is wrong.
fn tools_do_not_keep_it(server: &Server, out: &Path) {
    let uri = |password: &str| format!("mongodb://root:{password}@{}/?directConnection=true", server.address());
    let (right, wrong) = (uri(PASSWORD), uri(&format!("{PASSWORD}-2")));
    let path = |name: &str| out.join(name).to_str().expect("UTF-8").to_owned();
    let (directory, archive, report) = (path("dump"), path("archive"), path("report"));
    let archive = format!("--archive={archive}");
    for (arguments, succeeds) in [
        (&["dump", "--uri", &right, "--out", &directory][..], true),
        (&["dump", "--uri", &right, &archive], true),
        (&["restore", "--uri", &right, "--drop", &archive], true),
        (&[&MEASURE[..], &["--uri", &right, "--output", &report]].concat(), true),
        (&["dump", "--uri", &wrong, "--out", &directory], false),
        (&[&MEASURE[..], &["--uri", &wrong]].concat(), false),
        (&["dump", "--uri", &format!("{right}&unknown={PASSWORD}"), "--out", &directory], false),
    ] {
        let output = bunko(arguments, &[]);
        let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned()).concat();
        assert!(!said.contains(PASSWORD), "{said}");
        assert_eq!(output.status.success() || has_measured(&output), succeeds, "{said}");
    }
}
