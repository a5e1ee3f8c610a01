//! Logging in over real sockets: both mechanisms, refusals, the end of a login, and passwords that are never shown.

mod attacks;
mod rights;

use crate::peer::{self, Running, binary, code};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_client::{Connection, Uri};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;

/// A password that must not appear anywhere.
const CANARY: &str = "canary-c0ffee";

fn connect(address: &str, user: &str, password: &str, options: &str) -> Result<Connection, String> {
    let uri = format!("mongodb://{user}:{password}@{address}/?authSource=test{options}");
    Connection::connect(&uri.parse::<Uri>().expect("valid")).map_err(|error| error.to_string())
}

fn run(connection: &mut Connection, database: &str, command: &str) -> DocumentBuf {
    let command = shell::parse_document(command).expect(command);
    connection.run_command(database, command.as_ref()).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn who(connection: &mut Connection) -> String {
    let status = run(connection, "admin", "{connectionStatus: 1}");
    let info = status.as_ref().get("authInfo").and_then(ValueRef::as_document).expect("authInfo");
    shell::print(info.get("authenticatedUsers").expect("users"))
}

#[test]
fn both_mechanisms_log_in_and_nothing_else_does() {
    let (running, dbpath) = start();
    let address = running.address().to_string();
    let mut anyone = Connection::connect(&format!("mongodb://{address}/").parse().expect("valid")).expect("connected");
    assert_eq!(who(&mut anyone), "[]");
    run(&mut anyone, "test", &format!("{{createUser: 'u,=', pwd: '{CANARY}', roles: ['read']}}"));
    run(
        &mut anyone,
        "test",
        &format!("{{createUser: 'old', pwd: '{CANARY}', roles: [], mechanisms: ['SCRAM-SHA-1']}}"),
    );
    for (user, options) in [
        ("u%2C%3D", ""),
        ("u%2C%3D", "&authMechanism=SCRAM-SHA-1"),
        ("u%2C%3D", "&authMechanism=SCRAM-SHA-256"),
        // The handshake tells the client that this user has only the old mechanism.
        ("old", ""),
    ] {
        let mut connection = connect(&address, user, CANARY, options).expect(user);
        let name = user.replace("%2C%3D", ",=");
        assert_eq!(who(&mut connection), format!("[{{user: \"{name}\", db: \"test\"}}]"));
    }
    // The error does not tell whether the user or the password was wrong.
    let refusal = |user, password, options| match connect(&address, user, password, options) {
        Ok(_) => panic!("{user} is logged in"),
        Err(error) => error.replace(user, "<user>"),
    };
    let mechanism = "&authMechanism=SCRAM-SHA-256";
    let wrong = refusal("u%2C%3D", "wrong", mechanism).replace("u,=", "<user>");
    assert!(wrong.contains("Authentication failed") && !wrong.contains("wrong"), "{wrong}");
    assert_eq!(refusal("nobody", CANARY, mechanism), wrong);
    assert_eq!(refusal("old", CANARY, mechanism), wrong);
    // A login ends when its user is dropped, also on an open connection.
    let mut connection = connect(&address, "old", CANARY, "").expect("logged in");
    run(&mut anyone, "test", "{dropUser: 'old'}");
    assert_eq!(who(&mut connection), "[]");
    assert_canary_is_nowhere(&running, &mut anyone, dbpath.path());
}

fn start() -> (Server, tempfile::TempDir) {
    let dbpath = temporary_dbpath();
    // Every operation counts as slow, so that all are logged.
    let server = Server::start(&binary(), dbpath.path(), &["--slowms", "0"]).expect("started");
    (server, dbpath)
}

fn assert_canary_is_nowhere(running: &Server, connection: &mut Connection, dbpath: &std::path::Path) {
    for command in ["{getLog: 'global'}", "{currentOp: 1, $all: true}", "{getCmdLineOpts: 1}"] {
        let reply = run(connection, "admin", command);
        assert!(!format!("{reply:?}").contains(CANARY), "{command} shows it");
    }
    running.logged("createUser");
    assert!(!running.output_tail().contains(CANARY));
    assert_nowhere(dbpath, CANARY);
}

/// Checks that no file below the directory contains those words.
pub fn assert_nowhere(directory: &std::path::Path, words: &str) {
    let mut files = vec![directory.to_owned()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).expect("readable").map(|entry| entry.expect("readable").path()));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).expect("readable");
            let has_it = bytes.windows(words.len()).any(|window| window == words.as_bytes());
            assert!(!has_it, "{} holds it", path.display());
        }
    }
}

/// The parameter works in each of its spellings.
#[test]
fn without_the_localhost_exception_no_client_makes_the_first_user() {
    let create = shell::parse_document("{createUser: 'first', pwd: 'p', roles: ['root']}").expect("a command");
    let outcome_with = |arguments: &[&str]| {
        let dbpath = temporary_dbpath();
        let arguments = [&["--auth"], arguments].concat();
        let server = Server::start(&binary(), dbpath.path(), &arguments).expect("started");
        let uri: Uri = format!("mongodb://{}/", server.address()).parse().expect("valid");
        let created = Connection::connect(&uri).expect("connected").run_command("admin", create.as_ref());
        created.map(drop).map_err(|error| error.to_string())
    };
    for value in ["true", "1"] {
        assert_eq!(outcome_with(&["--setParameter", &format!("enableLocalhostAuthBypass={value}")]), Ok(()), "{value}");
    }
    for value in ["false", "0"] {
        let refused = outcome_with(&["--setParameter", &format!("enableLocalhostAuthBypass={value}")]);
        assert!(refused.expect_err(value).contains("requires authentication"), "{value}");
    }
    for value in ["false", "'false'", "0"] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, format!("setParameter: {{enableLocalhostAuthBypass: {value}}}\n")).expect("written");
        let refused = outcome_with(&["--config", file.path().to_str().expect("UTF-8")]);
        assert!(refused.expect_err(value).contains("requires authentication"), "{value}");
    }
}

#[test]
fn conversations_cannot_be_forged() {
    let running = Running::start();
    let mut peer = running.peer();
    // A login with an unknown mechanism is logged.
    for (begin, mechanism) in [("saslStart: 1, payload: ''", "GSSAPI"), ("authenticate: 1", "MONGODB-CR")] {
        peer.run("admin", &format!("{{{begin}, mechanism: '{mechanism}'}}"));
        running.assert_logged(&format!("\"mechanism\":\"{mechanism}\",\"reason\":\"the mechanism is unknown"));
    }
    let start = |payload: &str| {
        let payload = bunko_bson::base64::encode(payload.as_bytes());
        format!("{{saslStart: 1, mechanism: 'SCRAM-SHA-256', payload: '{payload}'}}")
    };
    assert_eq!(code(peer.run("admin", "{saslContinue: 1, conversationId: 1, payload: ''}").as_ref()), 17);
    for malformed in ["", "n,,", "p=tls-unique,,n=u,r=0123456789", "n,,n=u,r=short", "n,a=v,n=u,r=0123456789"] {
        assert_eq!(code(peer.run("admin", &start(malformed)).as_ref()), 18, "{malformed}");
    }
    assert_eq!(code(peer.run("admin", "{saslStart: 1, mechanism: 'PLAIN', payload: ''}").as_ref()), 334);
    let first = start("n,,n=nobody,r=0123456789");
    let challenge = |peer: &mut peer::Peer| {
        let reply = peer.run("admin", &first);
        let payload = reply.as_ref().get("payload").and_then(ValueRef::as_str).expect("a payload").to_owned();
        String::from_utf8(bunko_bson::base64::decode(&payload).expect("base64")).expect("text")
    };
    // A repeated client nonce gets a new server nonce each time, with the same salt.
    let (one, other) = (challenge(&mut peer), challenge(&mut peer));
    let part = |text: &str, at: usize| text.split(',').nth(at).expect("a part").to_owned();
    assert_ne!(part(&one, 0), part(&other, 0));
    assert_eq!((part(&one, 1), part(&one, 2)), (part(&other, 1), "i=15000".to_owned()));
    // One answer ends a conversation, and an answer with a wrong id does, too.
    let answer = |id: i32, challenge: &str| {
        let message = format!("c=biws,{},p={}", part(challenge, 0), bunko_bson::base64::encode(&[7; 32]));
        let payload = bunko_bson::base64::encode(message.as_bytes());
        format!("{{saslContinue: 1, conversationId: {id}, payload: '{payload}'}}")
    };
    assert_eq!(code(peer.run("admin", &answer(1, &other)).as_ref()), 18);
    assert_eq!(code(peer.run("admin", &answer(1, &other)).as_ref()), 17);
    let third = challenge(&mut peer);
    assert_eq!(code(peer.run("admin", &answer(2, &third)).as_ref()), 17);
    assert_eq!(code(peer.run("admin", &answer(1, &third)).as_ref()), 17);
    // An answer to an earlier challenge is refused.
    challenge(&mut peer);
    assert_eq!(code(peer.run("admin", &answer(1, &third)).as_ref()), 18);
    // Without TLS there is no certificate, so a user who is identified by one cannot log in.
    assert_eq!(code(peer.run("$external", "{createUser: 'CN=x', roles: []}").as_ref()), 0);
    let claim = "{authenticate: 1, mechanism: 'MONGODB-X509', user: 'CN=x'}";
    assert_eq!(code(peer.run("$external", claim).as_ref()), 18);
    running.assert_serves();
}
