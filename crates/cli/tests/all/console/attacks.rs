//! Requests that are not of our own page.

use super::{Reply, Site};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Number of replies on a connection, and the first of them.
fn replies(text: &str) -> (usize, Reply) {
    (text.matches("HTTP/1.1 ").count(), Reply::read(text))
}

#[test]
fn paths_name_no_files() {
    let site = Site::start(&[]);
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2fetc/passwd",
        "//",
        "//main.js",
        "/./main.js",
        "/main.js/..",
        "/main.js%00",
        "/MAIN.JS",
        "/page/main.js",
        "/api",
        "/api/run",
        "/api/login",
    ] {
        let reply = site.get(path);
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
    }
    // A query changes nothing.
    assert_eq!(site.get("/main.js?/../x").status, 200);
}

#[test]
fn other_sites_act_for_no_one() {
    let site = Site::start(&[]);
    let token = site.log_in("", "").expect("no login is required");
    let body = r#"{"database":"admin","command":{"hello":1}}"#;
    let own = site.own_headers(&token);
    assert_eq!(site.post_with("/api/run", &own, body).status, 200);
    let origin = format!("Origin: http://{}\r\n", site.address);
    let changes = [
        (origin.as_str(), ""),
        (origin.as_str(), "Origin: http://evil.example\r\n"),
        (origin.as_str(), "Origin: null\r\n"),
        (origin.as_str(), "Origin: http://127.0.0.1:1\r\n"),
        ("Origin: http://", "Origin: https://"),
        ("Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"),
        ("Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: same-site"),
        ("X-Bunko-Console: 1\r\n", ""),
        ("Content-Type: application/json", "Content-Type: text/plain"),
        ("Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"),
        ("Content-Type: application/json\r\n", ""),
    ];
    for path in ["/api/run", "/api/login", "/api/logout"] {
        for (from, to) in changes {
            let headers = own.replace(from, to);
            assert_ne!(headers, own);
            let reply = site.post_with(path, &headers, body);
            assert!(matches!(reply.status, 403 | 415), "{path}: {headers}: {reply:?}");
        }
    }
    // A browser asks before it sends such headers to another origin, and gets no leave.
    let ask = format!(
        "OPTIONS /api/run HTTP/1.1\r\nHost: {}\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\
         Access-Control-Request-Headers: x-bunko-console\r\nConnection: close\r\n\r\n",
        site.address
    );
    let reply = Reply::read(&site.send(&ask));
    assert!(reply.status == 405 && !reply.head.contains("access-control"), "{reply:?}");
    // A session cannot be guessed, and none is told by a cookie.
    for guess in ["", "x", &"0".repeat(64)] {
        assert_eq!(site.post("/api/run", guess, body).status, 401, "{guess}");
    }
    assert!(!site.post_with("/api/run", &own, body).head.contains("set-cookie"));
}

#[test]
fn names_that_others_point_here_are_refused() {
    let site = Site::start(&["--bind-ip", "127.0.0.1"]);
    let port = site.address.rsplit(':').next().expect("a port");
    let asked =
        |headers: &str| Reply::read(&site.send(&format!("GET / HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")));
    for own in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "localhost".to_owned(), "[::1]:9".to_owned()]
    {
        assert_eq!(asked(&format!("Host: {own}\r\n")).status, 200, "{own}");
    }
    for other in [format!("evil.example:{port}"), "localhost.evil.example".into(), "127.0.0.1.evil.example".into()] {
        assert_eq!(asked(&format!("Host: {other}\r\n")).status, 421, "{other}");
    }
    assert_eq!(asked("").status, 400);
    assert_eq!(asked("Host: localhost\r\nHost: evil.example\r\n").status, 400);
    let absolute = "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(Reply::read(&site.send(absolute)).status, 400);
}

#[test]
fn no_request_is_read_in_two_ways() {
    let site = Site::start(&[]);
    let token = site.log_in("", "").expect("no login is required");
    let (host, own) = (&site.address, site.own_headers(&token));
    let hidden = format!("GET /main.js HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let length = hidden.len();
    for framing in [
        "Transfer-Encoding: chunked\r\n".to_owned(),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"),
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "Content-Length: 0\r\nTransfer-Encoding: identity\r\n".to_owned(),
        format!("Content-Length: 0\r\nContent-Length: {length}\r\n"),
        "Content-Length: +0\r\n".to_owned(),
        "Content-Length: 0, 5\r\n".to_owned(),
        "Content-Length: -1\r\n".to_owned(),
        "Content-Length: 18446744073709551616\r\n".to_owned(),
        "Content-Length: 300000\r\n".to_owned(),
        String::new(),
    ] {
        let request = format!("POST /api/logout HTTP/1.1\r\nHost: {host}\r\n{own}{framing}\r\n0\r\n\r\n{hidden}");
        let (count, first) = replies(&site.send(&request));
        assert!(count <= 1 && first.status != 200, "{framing}: {first:?}");
    }
    // The session was not ended by any of them.
    site.run(&token, "admin", "{hello: 1}").expect_ok();
    for start in [
        "GET / HTTP/1.0",
        "GET / HTTP/2.0",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 x",
        "G<T / HTTP/1.1",
        "GET /\0 HTTP/1.1",
    ] {
        let request = format!("{start}\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let (count, first) = replies(&site.send(&request));
        assert!(count <= 1 && first.status != 200, "{start}: {first:?}");
    }
    let folded = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: a\r\n b\r\nConnection: close\r\n\r\n");
    assert_ne!(Reply::read(&site.send(&folded)).status, 200);
}

#[test]
fn requests_that_are_too_long_are_refused() {
    let site = Site::start(&[]);
    let token = site.log_in("", "").expect("no login is required");
    let body = format!(r#"{{"database":"admin","command":{{"hello":1,"comment":"{}"}}}}"#, "x".repeat(300 << 10));
    assert_eq!(site.post("/api/run", &token, &body).status, 413);
    let long = format!("X-Long: {}\r\n", "x".repeat(64 << 10));
    let reply = site.post_with("/api/run", &long, "{}");
    assert!(matches!(reply.status, 0 | 431), "{reply:?}");
    let deep = format!(
        r#"{{"database":"a","command":{{"find":"c","filter":{}1{}}}}}"#,
        "{\"a\":".repeat(5000),
        "}".repeat(5000)
    );
    assert_eq!(site.post("/api/run", &token, &deep).status, 400);
    for wrong in ["", "[]", "{", "\u{feff}{}", "{\"command\":1,\"database\":\"a\"}", "{\"command\":{\"hello\":1}}"] {
        assert_eq!(site.post("/api/run", &token, wrong).status, 400, "{wrong}");
    }
    // A reply beyond the limit is refused, and the session goes on.
    let pad = "x".repeat(3 << 20);
    site.run_as_client("", "shop", &format!("{{insert: 'c', documents: [{{p: '{pad}'}}, {{p: '{pad}'}}]}}"));
    let reply = site.run(&token, "shop", "{find: 'c', filter: {}}");
    assert!(reply.status == 507 && reply.body.contains("ask for less"), "{}", reply.status);
    site.run(&token, "shop", "{find: 'c', filter: {}, limit: 1}").expect_ok();
}

#[test]
fn clients_that_say_little_leave_room_for_others() {
    let site = Site::start(&[]);
    let token = site.log_in("", "").expect("no login is required");
    let begun = |text: &str| {
        let mut socket = TcpStream::connect(&site.address).expect("connected");
        socket.write_all(text.as_bytes()).expect("sent");
        socket
    };
    let head = format!(
        "POST /api/run HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n{}\r\n",
        site.address,
        site.own_headers(&token)
    );
    let _slow: Vec<TcpStream> = ["", "GET / HT", &head].iter().cycle().take(24).map(|text| begun(text)).collect();
    site.run(&token, "admin", "{hello: 1}").expect_ok();
    // A body that does not come ends its connection.
    let mut socket = begun(&head);
    let mut reply = String::new();
    let _ = socket.read_to_string(&mut reply);
    assert_eq!(Reply::read(&reply).status, 408, "{reply}");
}
