//! `/metrics`, `/healthz` and `/readyz` over real sockets: replies, logins, and requests of hostile clients.

use crate::peer::binary;
use bunko_bson::base64;
use bunko_client::{Connection, Uri};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::io::{Read, Write};
use std::net::TcpStream;

/// The monitor's address, from the server's log.
fn monitor(server: &Server) -> String {
    let line = server.logged("The monitor serves");
    let (_, rest) = line.split_once("\"address\":\"").expect("the line names the address");
    rest.split('"').next().expect("quoted").to_owned()
}

/// Sends bytes and returns the whole reply.
fn send(address: &str, request: &str) -> String {
    let mut socket = TcpStream::connect(address).expect("connected");
    socket.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    let _ = socket.read_to_string(&mut reply);
    reply
}

fn get(address: &str, path: &str, headers: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"))
}

fn login(text: &str) -> String {
    format!("Authorization: Basic {}\r\n", base64::encode(text.as_bytes()))
}

fn run(server: &Server, credential: &str, command: &str) {
    let uri: Uri = format!("mongodb://{credential}{}/?authSource=admin", server.address()).parse().expect("valid");
    let command = shell::parse_document(command).expect(command);
    let mut connection = Connection::connect(&uri).expect("connected");
    connection.run_command("admin", command.as_ref()).unwrap_or_else(|error| panic!("{command:?}: {error}"));
}

fn status(reply: &str) -> &str {
    reply.get(9..12).unwrap_or(reply)
}

#[test]
fn a_server_that_is_not_asked_has_no_monitor() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("started");
    assert!(!server.output_tail().contains("The monitor serves"));
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("running");
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    assert!(names.into_iter().all(|name| name.trim() != "monitor"));
}

#[test]
fn metrics_count_what_clients_do() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--monitor-port", "0"]).expect("started");
    let address = monitor(&server);
    run(&server, "", "{insert: 'c', documents: [{}, {}, {}]}");
    let reply = get(&address, "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(reply.contains("content-type: application/openmetrics-text; version=1.0.0"), "{reply}");
    assert!(
        reply.contains("\nbunko_documents_total{action=\"inserted\"} 3\n") && reply.ends_with("# EOF\n"),
        "{reply}"
    );
    let disk = reply.lines().find_map(|line| line.strip_prefix("bunko_disk_free_bytes ")).expect("it has a directory");
    assert!(disk.parse::<f64>().expect("a number") > 0.0);
    assert!(get(&address, "/metrics", "").contains("content-type: text/plain; version=0.0.4"));
    for (path, words) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let reply = get(&address, path, "");
        assert!(status(&reply) == "200" && reply.ends_with(words), "{reply}");
    }
    // Requests of hostile clients are refused, and the next request is served.
    assert_eq!(status(&get(&address, "/../etc/passwd", "")), "404");
    assert_eq!(status(&get(&address, "//metrics", "")), "404");
    assert_eq!(status(&send(&address, "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")), "405");
    assert_eq!(status(&send(&address, "\u{16}\u{3}\u{1}\r\n\r\n")), "400");
    let long = "x".repeat(64 << 10);
    let reply = send(&address, &format!("GET /metrics HTTP/1.1\r\nHost: {long}\r\n\r\n"));
    assert!(reply.is_empty() || status(&reply) == "431", "{reply}");
    // Connections that say nothing leave room for others.
    let _idle: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(&address).expect("connected")).collect();
    assert_eq!(status(&get(&address, "/metrics", "")), "200");
}

#[test]
fn only_users_with_the_privilege_read_metrics() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--monitor-port", "0", "--auth"]).expect("started");
    let address = monitor(&server);
    run(&server, "", "{createUser: 'root', pwd: 'secret', roles: ['root']}");
    let root = "root:secret@";
    run(&server, root, "{createUser: 'watch', pwd: 'p:w', roles: ['clusterMonitor']}");
    run(&server, root, "{createUser: 'old', pwd: 'p', roles: ['clusterMonitor'], mechanisms: ['SCRAM-SHA-1']}");
    run(&server, root, "{createUser: 'reader', pwd: 'pw', roles: ['readAnyDatabase']}");
    let asked = |text: &str| status(&get(&address, "/metrics", &login(text))).to_owned();
    let reply = get(&address, "/metrics", "");
    assert!(status(&reply) == "401" && reply.contains("www-authenticate: Basic"), "{reply}");
    assert_eq!(asked("watch:p:w"), "200");
    assert_eq!(asked("watch:p:w"), "200", "the remembered login");
    assert_eq!(asked("admin/old:p"), "200");
    assert_eq!(asked("reader:pw"), "403");
    for wrong in ["watch:pw", "watch:", "nobody:pw", "test/watch:p:w", "watch"] {
        assert_eq!(asked(wrong), "401", "{wrong}");
    }
    assert!(!server.output_tail().contains("p:w"), "{}", server.output_tail());
    server.logged("the password is wrong");
    // A login that is remembered has no more rights than its user.
    assert_eq!(asked("watch:p:w"), "200");
    run(&server, root, "{revokeRolesFromUser: 'watch', roles: ['clusterMonitor']}");
    assert_eq!(asked("watch:p:w"), "403");
    run(&server, root, "{updateUser: 'watch', pwd: 'new', roles: ['clusterMonitor']}");
    assert_eq!(asked("watch:new"), "200");
    run(&server, root, "{updateUser: 'watch', pwd: 'newer'}");
    assert_eq!(asked("watch:new"), "401");
    assert_eq!(asked("watch:newer"), "200");
    run(&server, root, "{dropUser: 'watch'}");
    assert_eq!(asked("watch:newer"), "401");
    assert_eq!(status(&get(&address, "/healthz", "")), "200");
}

#[test]
fn a_port_that_is_taken_ends_the_start() {
    let dbpath = temporary_dbpath();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = taken.local_addr().expect("bound").port().to_string();
    let error = Server::start(&binary(), dbpath.path(), &["--monitor-port", &port]).expect_err("refused");
    assert!(error.contains(&format!("the monitor: cannot bind 127.0.0.1:{port}")), "{error}");
}
