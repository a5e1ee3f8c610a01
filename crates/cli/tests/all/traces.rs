//! Slow operations as spans, from a real server to a collector of the test.

mod collector;

use crate::peer::{Peer, binary};
use crate::refusal::{WRONG, output};
use crate::tls::authority::Authority;
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, fixed_port, temporary_dbpath};
use collector::Collector;
use collector::decoded::{Span, batch};
use std::path::Path;
use std::process::Command;

const TRACE_PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A server for which every operation is slow.
fn start(dbpath: &Path, url: &str) -> Server {
    let arguments = ["--opentelemetry-http-endpoint", url, "--slow-ms", "0", "--log-format", "json"];
    Server::start(&binary(), dbpath, &arguments).expect("the server starts")
}

/// A count in `serverStatus().bunko.traces`.
fn count(peer: &mut Peer, path: &[&str]) -> i64 {
    let status = peer.run("admin", "{serverStatus: 1}");
    let mut names = ["bunko", "traces"].iter().chain(path);
    let value = names.try_fold(ValueRef::Document(status.as_ref()), |value, name| value.as_document()?.get(name));
    value.and_then(number::as_i64_exact).unwrap_or_else(|| panic!("no {path:?} in {status:?}"))
}

fn dropped(peer: &mut Peer) -> i64 {
    ["queueFull", "notDelivered", "rejected"].iter().map(|reason| count(peer, &["droppedSpans", reason])).sum()
}

#[test]
fn slow_operations_are_spans_below_the_applications() {
    let (collector, dbpath) = (Collector::start(&[]), temporary_dbpath());
    let server = start(dbpath.path(), &collector.url());
    server.logged("Slow operations are sent as spans");
    let mut peer = Peer::connect(server.address());
    peer.run("shop", "{insert: 'things', documents: [{_id: 1, owner: 'canary'}, {_id: 2, owner: 'canary'}]}");
    let request = collector.request();
    for words in ["POST /v1/traces HTTP/1.1\r\n", "\r\nContent-Type: application/x-protobuf\r\n"] {
        assert!(request.head.contains(words), "{}", request.head);
    }
    let comment = format!("{{traceparent: '{TRACE_PARENT}', job: 'canary'}}");
    peer.run("shop", &format!("{{find: 'things', filter: {{owner: 'canary'}}, batchSize: 1, comment: {comment}}}"));
    peer.run("shop", "{insert: 'things', documents: [{_id: 'canary'}, {_id: 'canary'}]}");
    let batch = collector.batch_with("find things");
    assert_eq!(batch.resource["service.name"], "bunko");
    let find = batch.span("find things");
    assert_eq!((find.trace_id.as_str(), find.parent.as_str()), (&TRACE_PARENT[3..35], &TRACE_PARENT[36..52]));
    assert_eq!((find.kind, find.flags, find.error.as_str()), (2, 0x301, ""));
    assert!(find.start_ns <= find.end_ns && find.end_ns > 1_700_000_000_000_000_000, "{find:?}");
    let port = server.address().port().to_string();
    for (name, value) in [
        ("db.system.name", "mongodb"),
        ("db.namespace", "shop"),
        ("db.collection.name", "things"),
        ("db.operation.name", "find"),
        ("db.response.returned_rows", "1"),
        ("client.address", "127.0.0.1"),
        ("server.port", &port),
        ("bunko.plan_summary", "COLLSCAN"),
        ("bunko.has_sort_stage", "false"),
    ] {
        assert_eq!(find.attributes.get(name).map(String::as_str), Some(value), "{name} of {find:?}");
    }
    assert_eq!(find.attributes["bunko.query_shape_hash"].len(), 64, "{find:?}");
    assert!(find.attributes.contains_key("server.address") && find.attributes.contains_key("bunko.docs_examined"));
    // Neither values of the query nor the message of an error, which has the key, leave the server.
    let rest = batch.spans.iter().filter(|span| span.name != "find things");
    assert!(!format!("{:?} {find:?}", rest.collect::<Vec<_>>()).contains("canary"));
}

#[test]
fn a_cursor_continues_its_trace_and_statements_are_below_commands() {
    let (collector, dbpath) = (Collector::start(&[]), temporary_dbpath());
    let server = start(dbpath.path(), &collector.url());
    let mut peer = Peer::connect(server.address());
    peer.run("shop", "{insert: 'things', documents: [{_id: 1}, {_id: 2}, {_id: 3}]}");
    let find = format!("{{find: 'things', filter: {{_id: {{$gt: 0}}}}, batchSize: 1, comment: '{TRACE_PARENT}'}}");
    let found = peer.run("shop", &find);
    let cursor = found.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|cursor| cursor.get("id"));
    let cursor = cursor.and_then(number::as_i64_exact).expect("a cursor");
    let get_more = DocumentBuf::new().with("getMore", cursor).with("collection", "things").with("$db", "shop");
    peer.run_body(get_more.as_ref());
    peer.run("shop", "{update: 'things', updates: [{q: {_id: 1}, u: {$set: {n: 1}}}]}");
    let mut spans = Vec::new();
    // The update makes two spans with this name: the statement's and the command's.
    while spans.iter().filter(|span: &&Span| span.name == "update things").count() < 2 {
        spans.extend(batch(&collector.request().body).spans);
    }
    let hash =
        |name: &str| spans.iter().find(|span| span.name == name).map(|span| &span.attributes["bunko.query_shape_hash"]);
    assert_eq!(hash("find things"), hash("getMore things"));
    let get_more = spans.iter().find(|span| span.name == "getMore things").expect("sent");
    assert_eq!((get_more.trace_id.as_str(), get_more.parent.as_str()), (&TRACE_PARENT[3..35], &TRACE_PARENT[36..52]));
    let update = |kind: u64| spans.iter().find(|span| span.name == "update things" && span.kind == kind).expect("sent");
    let (statement, command) = (update(1), update(2));
    assert_eq!((&statement.trace_id, &statement.parent), (&command.trace_id, &command.id));
    assert_eq!(command.parent, "");
    assert_eq!(statement.attributes["bunko.modified"], "1");
}

#[test]
fn errors_have_a_code() {
    let (collector, dbpath) = (Collector::start(&[]), temporary_dbpath());
    let server = start(dbpath.path(), &collector.url());
    let mut peer = Peer::connect(server.address());
    peer.run("shop", "{find: 'things', filter: {$canary: 1}}");
    let batch = collector.batch_with("find things");
    let find = batch.span("find things");
    assert_eq!((find.error.as_str(), find.parent.as_str()), ("BadValue", ""));
    assert_eq!((&*find.attributes["db.response.status_code"], &*find.attributes["error.type"]), ("2", "2"));
    assert!(!format!("{find:?}").contains("canary"), "{find:?}");
}

#[test]
fn only_slow_operations_are_sent() {
    let (collector, dbpath) = (Collector::start(&[]), temporary_dbpath());
    // A log with all commands sends no more spans.
    let url = collector.url();
    let arguments = ["--opentelemetry-http-endpoint", &url, "--slow-ms", "3600000", "-v"];
    let mut server = Server::start(&binary(), dbpath.path(), &arguments).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    peer.run("shop", "{find: 'things'}");
    server.logged("Slow query");
    peer.run("shop", "{profile: 0, slowms: 0, sampleRate: 0.0}");
    peer.run("shop", "{find: 'things'}");
    assert_eq!((count(&mut peer, &["queuedSpans"]), count(&mut peer, &["sentSpans"])), (0, 0));
    peer.run("shop", "{profile: 0, slowms: 3600000, sampleRate: 1.0}");
    peer.run("shop", "{profile: 1, filter: {'command.find': 'things'}}");
    peer.run("shop", "{find: 'things'}");
    // The last spans are sent when the server stops.
    server.stop();
    let last = batch(&collector.request().body);
    assert_eq!(last.spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["find things"]);
}

#[test]
fn a_server_that_is_not_asked_has_neither_thread_nor_counts() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--slow-ms", "0"]).expect("started");
    let mut peer = Peer::connect(server.address());
    let status = peer.text("admin", "{serverStatus: 1}");
    assert!(status.contains("backup: ") && !status.contains("traces: "), "{status}");
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("running");
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    assert!(names.into_iter().all(|name| name.trim() != "traces"));
    let parameter = peer.text("admin", "{getParameter: 1, opentelemetryHttpEndpoint: 1}");
    assert_eq!(parameter, r#"{opentelemetryHttpEndpoint: "", ok: 1.0}"#);
}

#[test]
fn a_collector_that_is_away_is_told_once_and_found_again() {
    let (port, dbpath) = (fixed_port(), temporary_dbpath());
    let server = start(dbpath.path(), &format!("http://127.0.0.1:{port}"));
    let mut peer = Peer::connect(server.address());
    peer.run("shop", "{insert: 'things', documents: [{_id: 1}]}");
    let failure = server.logged("The collector does not take spans of slow operations");
    assert!(failure.contains("/v1/traces") && failure.contains("\"error\":\""), "{failure}");
    assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
    let collector = Collector::start_at(port);
    collector.batch_with("insert things");
    server.logged("The collector takes spans of slow operations again");
    let failures = server.output_tail().matches("does not take spans").count();
    assert_eq!(failures, 1, "{}", server.output_tail());
    assert_eq!(dropped(&mut peer), 0);
}

#[test]
fn a_full_queue_drops_spans_and_holds_nothing_up() {
    /// Spans in the queue, and those of the batch that is being sent.
    const KEPT_MAX: i64 = 2048 + 512;
    const PINGS: i64 = KEPT_MAX + 1000;
    // Connections are accepted by the kernel, and no one answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let dbpath = temporary_dbpath();
    let mut server = start(dbpath.path(), &format!("http://{}", silent.local_addr().expect("bound")));
    let mut peer = Peer::connect(server.address());
    for _ in 0..PINGS {
        assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
    }
    let dropped = dropped(&mut peer);
    assert!(dropped >= PINGS - KEPT_MAX, "{dropped}");
    assert_eq!(count(&mut peer, &["sentSpans"]), 0);
    // Neither does the stop wait for an answer.
    server.stop();
}

#[test]
fn the_collectors_answer_decides() {
    const BUSY: &str = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
    const AWAY: &str = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 0\r\n\r\n";
    const GARBAGE: &str = "220 smtp.example.com ESMTP\r\n";
    const HUNG_UP: &str = "";
    const PARTIAL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\n\u{2}\u{8}\u{1}";
    const REFUSED: &str = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let (collector, dbpath) = (Collector::start(&[GARBAGE, HUNG_UP, BUSY, AWAY, PARTIAL, REFUSED]), temporary_dbpath());
    let server = start(dbpath.path(), &collector.url());
    let mut peer = Peer::connect(server.address());
    peer.run("shop", "{insert: 'things', documents: [{_id: 1}]}");
    let first = collector.request().body;
    for _ in 0..4 {
        assert_eq!(collector.request().body, first);
    }
    let spans = batch(&first).spans.len() as i64;
    wait_until("the collector takes all spans but one", || count(&mut peer, &["droppedSpans", "rejected"]) >= 1);
    assert!(count(&mut peer, &["sentSpans"]) >= spans - 1);
    // The next batch is refused: it is not sent again.
    let refused = collector.request().body;
    wait_until("the batch is dropped", || count(&mut peer, &["droppedSpans", "rejected"]) >= 2);
    assert_ne!(collector.request().body, refused);
    assert_eq!(count(&mut peer, &["droppedSpans", "notDelivered"]), 0);
    // The log tells the first of several failures, and each recovery.
    let lines = |words: &str| server.output_tail().matches(words).count();
    wait_until("the second recovery is told", || lines("takes spans of slow operations again") == 2);
    assert_eq!(lines("does not take spans of slow operations"), 2, "{}", server.output_tail());
}

#[test]
fn a_collector_is_reached_by_tls() {
    let authority = Authority::new();
    let (collector, dbpath) = (Collector::start_encrypted(&authority), temporary_dbpath());
    let start = |ca: &Path, url: &str| {
        let mut command = Command::new(binary());
        command.args(["serve", "--port", "0", "--no-unix-socket", "--slow-ms", "0", "--dbpath"]).arg(dbpath.path());
        command.args(["--setParameter", &format!("opentelemetryHttpEndpoint={url}")]).env("SSL_CERT_FILE", ca);
        Server::spawn(command)
    };
    let mut server = start(&authority.file("ca.pem"), &collector.encrypted_url()).expect("the server starts");
    Peer::connect(server.address()).run("shop", "{insert: 'things', documents: [{_id: 1}]}");
    collector.batch_with("insert things");
    server.stop();
    let other = Authority::new();
    let mut server = start(&other.file("ca.pem"), &collector.encrypted_url()).expect("the server starts");
    Peer::connect(server.address()).run("shop", "{ping: 1}");
    let failure = server.logged("The collector does not take spans of slow operations");
    assert!(failure.contains("certificate"), "{failure}");
    server.stop();
    let missing = start(Path::new("/nonexistent/ca.pem"), &collector.encrypted_url()).expect_err("refused");
    assert!(missing.contains("opentelemetryHttpEndpoint: ") && missing.contains("/nonexistent/ca.pem"), "{missing}");
}

#[test]
fn bad_settings_are_refused() {
    for url in ["localhost:4318", "grpc://localhost:4317", "http://localhost:99999", "http:///v1/traces"] {
        let text = output(&binary(), &["--opentelemetry-http-endpoint", url], WRONG);
        assert!(text.contains(&format!("'{url}'")) && text.contains("http://localhost:4318/v1/traces"), "{text}");
        let text = output(&binary(), &["--setParameter", &format!("opentelemetryHttpEndpoint={url}")], WRONG);
        assert!(text.contains(&format!("opentelemetryHttpEndpoint: '{url}'")), "{text}");
    }
    let text = output(&binary(), &["--setParameter", "opentelemetryTraceDirectory=/tmp"], WRONG);
    assert!(text.contains("opentelemetryTraceDirectory is not supported yet"), "{text}");
    let (collector, dbpath) = (Collector::start(&[]), temporary_dbpath());
    let server = start(dbpath.path(), &collector.url());
    let mut peer = Peer::connect(server.address());
    let changed = peer.text("admin", "{setParameter: 1, opentelemetryHttpEndpoint: 'http://localhost'}");
    assert!(changed.contains("not allowed to change [opentelemetryHttpEndpoint] at runtime"), "{changed}");
    let shown = peer.text("admin", "{getParameter: 1, opentelemetryHttpEndpoint: 1}");
    assert!(shown.contains(&collector.url()), "{shown}");
}
