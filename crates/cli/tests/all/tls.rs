//! TLS over real sockets: accepted clients, refused clients with their log lines, and other work meanwhile.

pub(crate) mod authority;

use crate::peer::{allow_open_files, binary};
use authority::{Authority, SignedBy, Validity};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{Connection, Uri};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use rcgen::{KeyPair, KeyUsagePurpose};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for an event that must happen.
const PATIENCE: Duration = Duration::from_mins(1);
const DOCUMENTS: i32 = 2_000;
/// The first bytes of a ClientHello of TLS 1.3.
const HELLO_BEGINNING: [u8; 11] = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

fn connect(server: &Server, options: &str) -> Result<Connection, String> {
    let uri = format!("mongodb://localhost:{}/?{options}", server.address().port());
    Connection::connect(&uri.parse::<Uri>().expect("valid")).map_err(|error| error.to_string())
}

fn run(connection: &mut Connection, command: &str) -> String {
    let command = shell::parse_document(command).expect(command);
    match connection.run_command("admin", command.as_ref()) {
        Ok(reply) => shell::print(ValueRef::Document(reply.as_ref())),
        Err(error) => error.to_string(),
    }
}

fn assert_refused(server: &Server, options: &str, words: &str) {
    assert!(connect(server, options).is_err(), "{words}");
    server.logged(words);
}

#[test]
fn documents_come_back_as_they_went() {
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &[]);
    let client = authority.write_client("ann", Validity::Now);
    let mut connection = connect(&server, &authority.options(Some(&client))).expect("connected");
    let pad = "x".repeat(1_000);
    let document = |id: i32| DocumentBuf::new().with("_id", id).with("pad", &pad);
    let mut documents = ArrayBuf::new();
    for id in 0..DOCUMENTS {
        documents.push(&document(id));
    }
    // More than the server reads at once.
    let insert = DocumentBuf::new().with("insert", "c").with("documents", &documents);
    let reply = connection.run_command("test", insert.as_ref()).expect("inserted");
    assert!(matches!(reply.as_ref().get("n"), Some(ValueRef::Int32(DOCUMENTS))), "{reply:?}");
    let sort = DocumentBuf::new().with("_id", 1_i32);
    let find = DocumentBuf::new().with("find", "c").with("sort", &sort).with("batchSize", 100_i32);
    let mut expected = 0;
    for found in connection.find_all("test", find.as_ref()).expect("a cursor") {
        assert_eq!(found.expect("a document"), document(expected));
        expected += 1;
    }
    assert_eq!(expected, DOCUMENTS);
    let status = run(&mut connection, "{serverStatus: 1}");
    let mode = run(&mut connection, "{getParameter: 1, tlsMode: 1}");
    assert_eq!(mode, r#"{tlsMode: "requireTLS", ok: 1.0}"#);
    assert!(status.contains(r#"SSLServerSubjectName: "CN=server,OU=tests,O=Bunko""#), "{status}");
    assert!(status.contains(r#""1.2": NumberLong(0), "1.3": NumberLong(1)"#), "{status}");
}

#[test]
fn clients_are_let_in_by_their_certificates() {
    let (authority, stranger, dbpath) = (Authority::new(), Authority::new(), temporary_dbpath());
    let list = authority.write_revocations(4);
    let revocations = ["--tlsCRLFile", list.to_str().expect("a path")];
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &revocations);
    let options = |file: &Path| authority.options(Some(file));
    connect(&server, &options(&authority.write_client("ann", Validity::Now))).expect("connected");
    assert_refused(&server, &authority.options(None), "the client showed no certificate");
    let other = stranger.write_client("ann", Validity::Now);
    assert_refused(&server, &options(&other), "no authority of net.tls.CAFile issued the client's certificate");
    let old = authority.write_client("olde", Validity::Past);
    assert_refused(&server, &options(&old), "the client's certificate has expired");
    let revoked = authority.write_client("karl", Validity::Now);
    assert_refused(&server, &options(&revoked), "net.tls.CRLFile revokes the client's certificate");
    let mistrust = stranger.options(Some(&authority.file("ann.pem")));
    assert_refused(&server, &mistrust, "the client does not trust the server's certificate");
}

#[test]
fn a_certificate_that_is_trusted_itself_is_taken_though_it_could_issue_others() {
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let mut trusted = std::fs::read_to_string(authority.file("ca.pem")).expect("read");
    let mut client = |name, usages: &[KeyUsagePurpose], is_trusted| {
        let (file, certificate) = authority.write_client_authority(name, usages, SignedBy::Itself);
        trusted.push_str(if is_trusted { &certificate } else { "" });
        file
    };
    let taken = client("ann", &[], true);
    let signing = client("signer", &[KeyUsagePurpose::KeyCertSign], true);
    let unknown = client("unknown", &[], false);
    let stranger = Authority::new();
    let of_the_same_name = stranger.write_client_authority("ann", &[], SignedBy::Itself).0;
    let issued = authority.write_client_authority("issued", &[], SignedBy::Authority).0;
    authority.write("ca.pem", &trusted);
    let options = |file: &Path| authority.options(Some(file));
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &["--auth"]);
    let mut first = connect(&server, &options(&taken)).expect("connected");
    let made = run(&mut first, "{createUser: 'root', pwd: 'secret', roles: ['root']}");
    assert_eq!(made, "{ok: 1.0}");
    let uri = format!("mongodb://root:secret@localhost:{}/?{}", server.address().port(), options(&taken));
    let mut root = Connection::connect(&uri.parse().expect("valid")).expect("connected");
    let create = "{createUser: 'CN=ann,OU=tests,O=Bunko', roles: [{role: 'root', db: 'admin'}]}";
    let create = shell::parse_document(create).expect("a command");
    root.run_command("$external", create.as_ref()).expect("made");
    connect(&server, &(options(&taken) + "&authMechanism=MONGODB-X509")).expect("logged in");
    for refused in [signing, issued, unknown, of_the_same_name] {
        assert_refused(&server, &options(&refused), "the client's certificate is one of an authority");
    }
    drop(server);
    let list = authority.write_revocations(4);
    let revocations = ["--tlsCRLFile", list.to_str().expect("a path")];
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &revocations);
    assert_refused(&server, &options(&taken), "the client's certificate is one of an authority");
}

#[test]
fn a_certificate_may_be_left_out_where_that_is_said() {
    let (authority, stranger, dbpath) = (Authority::new(), Authority::new(), temporary_dbpath());
    let more = ["--tlsAllowConnectionsWithoutCertificates", "--tlsDisabledProtocols", "TLS1_3"];
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &more);
    let mut connection = connect(&server, &authority.options(None)).expect("connected");
    let status = run(&mut connection, "{serverStatus: 1}");
    let versions = status.split("transportSecurity").nth(1).expect("a section");
    assert!(versions.contains(r#""1.2": NumberLong(1), "1.3": NumberLong(0)"#), "{versions}");
    // An optional certificate must be valid if the client shows one.
    let other = stranger.write_client("ann", Validity::Now);
    assert_refused(&server, &authority.options(Some(&other)), "no authority of net.tls.CAFile");
}

#[test]
fn modes_say_who_speaks_what() {
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let client = authority.write_client("ann", Validity::Now);
    let encrypted = authority.options(Some(&client));
    let impatient = "&connectTimeoutMS=2000&serverSelectionTimeoutMS=2000";
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &[]);
    assert_refused(&server, &impatient[1..], "TLS is required (net.tls.mode)");
    drop(server);
    let server = authority.serve(&binary(), dbpath.path(), "allowTLS", &[]);
    for options in [encrypted.as_str(), ""] {
        let mut connection = connect(&server, options).expect("connected");
        assert_eq!(run(&mut connection, "{ping: 1}"), "{ok: 1.0}");
    }
    drop(server);
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("started");
    assert_refused(&server, &(encrypted + impatient), "TLS is disabled (net.tls.mode)");
}

#[test]
fn a_hello_is_known_however_it_is_cut() {
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let server = authority.serve(&binary(), dbpath.path(), "preferTLS", &[]);
    // TLS 1.1, which the server refuses: version, random, no session, one cipher, no compression, one extension with a
    // signature algorithm.
    let extensions = [0, 8, 0, 13, 0, 4, 0, 2, 8, 4];
    let body = [&[3, 2][..], &[7; 32], &[0], &[0, 2, 0, 0x2f], &[1, 0], &extensions].concat();
    let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    let record = [&[22, 3, 1, 0, message.len() as u8][..], &message].concat();
    for length in [1, 5, 15, 16, record.len()] {
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        stream.set_nodelay(true).expect("set");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.write_all(&record[..length]).expect("sent");
        std::thread::yield_now();
        stream.write_all(&record[length..]).expect("sent");
        let mut alert = [0; 7];
        stream.read_exact(&mut alert).expect("an alert");
        // A fatal alert, "protocol_version".
        assert_eq!((alert[0], alert[5], alert[6]), (21, 2, 70), "{length}");
    }
    server.logged("client and server have no version or cipher of TLS in common");
}

#[test]
fn a_thousand_half_open_handshakes_hold_up_no_client() {
    const HALF_OPEN: usize = 1_000;
    const GROWTH_BYTES_MAX: u64 = 64 << 20;
    allow_open_files();
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let server = authority.serve(&binary(), dbpath.path(), "allowTLS", &[]);
    let client = authority.write_client("ann", Validity::Now);
    let mut bystander = connect(&server, &authority.options(Some(&client))).expect("connected");
    let before = resident_bytes(&server);
    let half_open: Vec<_> = (0..HALF_OPEN)
        .map(|number| {
            let mut stream = TcpStream::connect(server.address()).expect("connected");
            stream.write_all(&HELLO_BEGINNING[..=number % HELLO_BEGINNING.len()]).expect("sent");
            if number % 100 == 0 {
                assert_eq!(run(&mut bystander, "{ping: 1}"), "{ok: 1.0}");
                connect(&server, &authority.options(Some(&client))).expect("connected");
            }
            stream
        })
        .collect();
    assert_eq!(run(&mut bystander, "{ping: 1}"), "{ok: 1.0}");
    let grown = resident_bytes(&server).saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes");
    drop(half_open);
}

/// A client that begins a handshake has ten seconds, however it divides its bytes.
#[test]
fn a_slow_handshake_is_closed_after_ten_seconds() {
    const TIME_MAX: Duration = Duration::from_secs(10);
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &[]);
    let began = Instant::now();
    let mut slow: Vec<_> = [0, 1, 5, HELLO_BEGINNING.len()]
        .into_iter()
        .map(|length| {
            let mut stream = TcpStream::connect(server.address()).expect("connected");
            stream.write_all(&HELLO_BEGINNING[..length]).expect("sent");
            stream.set_read_timeout(Some(PATIENCE)).expect("set");
            stream
        })
        .collect();
    // One client continues, a byte at a time, while the ten seconds pass: the clock is that of another process.
    let mut dripping = TcpStream::connect(server.address()).expect("connected");
    dripping.write_all(&HELLO_BEGINNING).expect("sent");
    while began.elapsed() < PATIENCE && dripping.write_all(&[0]).is_ok() {
        std::thread::sleep(Duration::from_millis(250));
    }
    let ended = began.elapsed();
    assert!(ended + Duration::from_secs(1) > TIME_MAX && ended < PATIENCE, "{ended:?}");
    for stream in &mut slow {
        let mut rest = Vec::new();
        // The connection ends or is reset, without a wait.
        let _ = stream.read_to_end(&mut rest);
        assert!(began.elapsed() < PATIENCE, "it is still open");
    }
    server.logged("the client took more than 10 s");
}

fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn users_log_in_by_certificate() {
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let more = ["--auth", "--tlsAllowConnectionsWithoutCertificates"];
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &more);
    let file = |name| authority.options(Some(&authority.write_client(name, Validity::Now)));
    let x509 = |name| file(name) + "&authMechanism=MONGODB-X509";
    let command = |name: &str, role: &str| {
        format!("{{createUser: 'CN={name},OU=tests,O=Bunko', roles: [{{role: '{role}', db: 'admin'}}]}}")
    };
    let external = |connection: &mut Connection, text: &str| {
        let command = shell::parse_document(text).expect(text);
        connection.run_command("$external", command.as_ref()).map(drop).map_err(|error| error.to_string())
    };
    // A certificate alone is not a user. The error does not tell which of the two is missing.
    let nobody = connect(&server, &x509("ann")).err().expect("there is no such user");
    assert!(nobody.contains("Authentication failed") && nobody.contains("18"), "{nobody}");
    let mut first = connect(&server, &file("ann")).expect("connected");
    external(&mut first, &command("root", "root")).expect("the first user");
    assert!(external(&mut first, &command("ann", "root")).is_err(), "the exception is over");
    let mut root = connect(&server, &x509("root")).expect("logged in");
    external(&mut root, &command("ann", "readAnyDatabase")).expect("created");
    // Also with speculative authentication, as drivers use it.
    for hello in [
        "",
        "{hello: 1, speculativeAuthenticate: {authenticate: 1, mechanism: 'MONGODB-X509', db: '$external'}}",
        "{hello: 1, speculativeAuthenticate: {authenticate: 1, mechanism: 'MONGODB-X509'}}",
    ] {
        let mut ann = connect(&server, &if hello.is_empty() { x509("ann") } else { file("ann") }).expect("connected");
        if !hello.is_empty() {
            let reply = run(&mut ann, hello);
            let expected = r#"speculativeAuthenticate: {dbname: "$external", user: "CN=ann,OU=tests,O=Bunko"}"#;
            assert!(reply.contains(expected), "{reply}");
        }
        let status = run(&mut ann, "{connectionStatus: 1}");
        assert!(status.contains(r#"[{user: "CN=ann,OU=tests,O=Bunko", db: "$external"}]"#), "{status}");
        assert!(run(&mut ann, "{find: 'c'}").contains("ok: 1.0"));
        assert!(run(&mut ann, "{insert: 'c', documents: [{}]}").contains("not authorized"));
    }
    // A client can log in neither as another user, nor without a certificate.
    let mut other = connect(&server, &file("ann")).expect("connected");
    let claim = "{authenticate: 1, mechanism: 'MONGODB-X509', user: 'CN=root,OU=tests,O=Bunko'}";
    assert!(external(&mut other, claim).is_err_and(|error| error.contains("18")));
    server.logged("the client's certificate names another user");
    let mut bare = connect(&server, &authority.options(None)).expect("connected");
    assert!(external(&mut bare, claim).is_err_and(|error| error.contains("18")));
    server.logged("the client showed no certificate by TLS");
    let hello = "{hello: 1, speculativeAuthenticate: {authenticate: 1, mechanism: 'MONGODB-X509', db: '$external'}}";
    assert!(!run(&mut bare, hello).contains("speculativeAuthenticate"));
    // A login ends when its user is dropped.
    let mut ann = connect(&server, &x509("ann")).expect("logged in");
    external(&mut root, "{dropUser: 'CN=ann,OU=tests,O=Bunko'}").expect("dropped");
    assert!(run(&mut ann, "{find: 'c'}").contains("requires authentication"));
}

#[test]
fn tools_speak_tls_and_log_in() {
    let (authority, dbpath, out) = (Authority::new(), temporary_dbpath(), temporary_dbpath());
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &["--auth"]);
    let file = authority.write_client("root", Validity::Now);
    let options = authority.options(Some(&file));
    let mut connection = connect(&server, &options).expect("connected");
    run(&mut connection, "{createUser: 'root', pwd: 'secret', roles: ['root']}");
    let uri = format!("mongodb://root:secret@localhost:{}/?{options}", server.address().port());
    let mut connection = Connection::connect(&uri.parse().expect("valid")).expect("logged in");
    let subject = "CN=root,OU=tests,O=Bunko";
    let create = format!("{{createUser: '{subject}', roles: [{{role: 'root', db: 'admin'}}]}}");
    let create = shell::parse_document(&create).expect("a command");
    connection.run_command("$external", create.as_ref()).expect("created");
    let insert = shell::parse_document("{insert: 'c', documents: [{_id: 1}, {_id: 2}]}").expect("a command");
    connection.run_command("own", insert.as_ref()).expect("inserted");
    let (port, ca) = (server.address().port().to_string(), authority.file("ca.pem"));
    let (ca, file) = (ca.to_str().expect("a path"), file.to_str().expect("a path"));
    let place = ["--host", "localhost", "--port", &port];
    let tls = ["--tls", "--tlsCAFile", ca, "--tlsCertificateKeyFile", file];
    let ssl = ["--ssl", "--sslCAFile", ca, "--sslPEMKeyFile", file];
    let scram = ["-u", "root", "-p", "secret", "--authenticationDatabase", "admin"];
    let x509 = ["--authenticationMechanism", "MONGODB-X509"];
    let named =
        |tls: &[&str], login: &[&str]| [&place[..], tls, login].concat().into_iter().map(str::to_owned).collect();
    let whole_uri = |uri: String| vec!["--uri".to_owned(), uri];
    let ways: [Vec<String>; 4] = [
        named(&tls, &scram),
        named(&ssl, &x509),
        whole_uri(uri.clone()),
        whole_uri(format!("mongodb://localhost:{port}/?{options}&authMechanism=MONGODB-X509")),
    ];
    for (number, way) in ways.iter().enumerate() {
        let directory = out.path().join(number.to_string());
        let directory = directory.to_str().expect("a path");
        tool("dump", way, &["--db", "own", "--out", directory]).expect("dumped");
        run(&mut connection, "{ping: 1}");
        connection.run_command("own", DocumentBuf::new().with("dropDatabase", 1_i32).as_ref()).expect("dropped");
        tool("restore", way, &[directory]).expect("restored");
        let count = connection.run_command("own", DocumentBuf::new().with("count", "c").as_ref()).expect("counted");
        assert!(matches!(count.as_ref().get("n"), Some(ValueRef::Int32(2))), "{way:?}: {count:?}");
    }
    // A server that the tool does not trust, a client without a certificate, and a wrong password.
    let system: Vec<String> = named(&["--tls", "--tlsCertificateKeyFile", file], &scram);
    assert!(tool("dump", &system, &["--archive"]).is_err_and(|said| said.contains("TLS")));
    let bare: Vec<String> = named(&tls[..3], &scram);
    tool("dump", &bare, &["--archive"]).expect_err("no certificate");
    let wrong = ["-u", "root", "-p", "wrong", "--authenticationDatabase", "admin"];
    let wrong: Vec<String> = named(&tls, &wrong);
    assert!(tool("dump", &wrong, &["--archive"]).is_err_and(|said| said.contains("Authentication failed")));
    for way in &ways[2..] {
        let bench: Vec<_> = ["run", "oltp"].into_iter().map(str::to_owned).chain(way.iter().cloned()).collect();
        // Other findings about so short a run do not matter here.
        let said = tool("bench", &bench, &["--scale", "1MB", "--duration", "1s"]).err().unwrap_or_default();
        assert!(!said.contains("uthenticat") && !said.contains("authoriz") && !said.contains("TLS"), "{said}");
    }
}

/// Runs a tool with the server's flags and more; the error is its standard error.
fn tool(name: &str, way: &[String], more: &[&str]) -> Result<(), String> {
    let output = std::process::Command::new(binary()).arg(name).args(way).args(more).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

#[test]
fn certificates_are_rotated_under_load() {
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let server = authority.serve(&binary(), dbpath.path(), "requireTLS", &[]);
    let client = authority.write_client("ann", Validity::Now);
    let options = authority.options(Some(&client));
    let mut operator = connect(&server, &options).expect("connected");
    let (is_over, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut connection = connect(&server, &options).expect("connected");
                    assert_eq!(run(&mut connection, "{ping: 1}"), "{ok: 1.0}");
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let subject = |operator: &mut Connection, name: &str| {
            let status = run(operator, "{serverStatus: 1}");
            assert!(status.contains(&format!("CN={name},OU=tests")), "{name}: {status}");
        };
        for round in 0..5 {
            let (name, before) = (format!("server {round}"), served.load(Ordering::Relaxed));
            authority.write_server(&name);
            assert_eq!(run(&mut operator, "{rotateCertificates: 1}"), "{ok: 1.0}");
            subject(&mut operator, &name);
            while served.load(Ordering::Relaxed) < before + 4 {
                std::thread::yield_now();
            }
        }
        authority.write("server.pem", "nothing");
        let error = run(&mut operator, "{rotateCertificates: 1}");
        assert!(error.contains("the old certificates stay in force") && error.contains("server.pem"), "{error}");
        subject(&mut operator, "server 4");
        let before = served.load(Ordering::Relaxed);
        while served.load(Ordering::Relaxed) < before + 4 {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    server.logged("Certificates could not be read");
}

#[test]
fn a_server_does_not_start_on_files_that_it_cannot_use() {
    let (authority, stranger, dbpath) = (Authority::new(), Authority::new(), temporary_dbpath());
    let foreign = std::fs::read_to_string(stranger.file("server.pem")).expect("readable");
    let own = std::fs::read_to_string(authority.file("server.pem")).expect("readable");
    let certificate = own.split("-----BEGIN PRIVATE").next().expect("a certificate");
    let key = foreign.find("-----BEGIN PRIVATE").map(|place| &foreign[place..]).expect("a key");
    for (name, text, expected) in [
        ("mixed.pem", format!("{certificate}{key}"), "mixed.pem"),
        ("bare.pem", certificate.to_owned(), "bare.pem is missing or no PEM"),
        ("locked.pem", own.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "locked.pem is encrypted"),
        ("empty.pem", String::new(), "empty.pem holds no PEM certificate"),
    ] {
        let file = authority.write(name, &text);
        let (file, ca) = (file.to_str().expect("a path").to_owned(), authority.file("ca.pem"));
        let ca = ca.to_str().expect("a path");
        let flags = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", &file, "--tlsCAFile", ca];
        let Err(error) = Server::start(&binary(), dbpath.path(), &flags) else { panic!("{name}: it starts") };
        assert!(error.contains(expected), "{error}");
    }
}

/// Keys as OpenSSL writes them, see `crates/certificates/src/key.rs`.
const PLAIN_KEY: &str = include_str!("../../../certificates/tests/keys/plain.pem");
const ENCRYPTED_KEY: &str = include_str!("../../../certificates/tests/keys/pbkdf2-sha256-aes256.pem");

#[test]
fn an_encrypted_key_is_opened_by_its_password_which_stays_hidden() {
    let (authority, dbpath) = (Authority::new(), temporary_dbpath());
    let key = KeyPair::from_pem(PLAIN_KEY).expect("a key");
    authority.write_server_with_key("server", &key, ENCRYPTED_KEY);
    let own = authority.file("server.pem");
    let start = |password: &[&str]| {
        let (own, ca) = (own.to_str().expect("a path"), authority.file("ca.pem"));
        let tls =
            ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", own, "--tlsCAFile", ca.to_str().expect("a path")];
        Server::start(&binary(), dbpath.path(), &[&tls[..], password].concat())
    };
    let refused = start(&[]).map(drop).expect_err("no password");
    assert!(refused.contains(own.to_str().expect("a path")) && refused.contains("it needs a password"), "{refused}");
    let refused = start(&["--tlsCertificateKeyFilePassword", "closed"]).map(drop).expect_err("another");
    assert!(refused.contains("is not opened by the password") && !refused.contains("closed"), "{refused}");
    let server = start(&["--tlsCertificateKeyFilePassword", "open"]).expect("started");
    let client = authority.write_client_with_key("ann", Validity::Now, &key, ENCRYPTED_KEY);
    let options = authority.options(Some(&client));
    assert!(connect(&server, &options).is_err_and(|error| error.contains("it needs a password")));
    let mut connection = connect(&server, &format!("{options}&tlsCertificateKeyFilePassword=open")).expect("connected");
    let told = run(&mut connection, "{getCmdLineOpts: 1}");
    assert!(told.contains("certificateKeyFilePassword: \"<password>\""), "{told}");
    assert!(told.contains("\"<password>\", ") && !told.contains("\"open\""), "{told}");
    // The new file is read with the old password.
    authority.write_server_with_key("another", &key, ENCRYPTED_KEY);
    assert_eq!(run(&mut connection, "{rotateCertificates: 1}"), "{ok: 1.0}");
    assert!(!server.output_tail().contains("open,") && !server.output_tail().contains("\"open\""));
}
