//! The console over real sockets: the page, its commands, logins, and requests of hostile clients.

mod attacks;
mod logins;
mod reports;

use crate::peer::binary;
use bunko_bson::{DocumentBuf, ValueRef, extended_json};
use bunko_client::{Connection, Uri};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::io::{Read, Write};
use std::net::TcpStream;
use tempfile::TempDir;

/// A server with a console.
struct Site {
    server: Server,
    address: String,
    _dbpath: TempDir,
}

/// The reply to a request.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Site {
    fn start(arguments: &[&str]) -> Self {
        let dbpath = temporary_dbpath();
        let arguments: Vec<&str> = ["--console", "0"].iter().chain(arguments).copied().collect();
        let server = Server::start(&binary(), dbpath.path(), &arguments).expect("started");
        let line = server.logged("The console is a page");
        let (_, rest) = line.split_once("\"url\":\"http://").expect("the line names the address");
        let address = rest.split('/').next().expect("a slash follows").to_owned();
        Self { server, address, _dbpath: dbpath }
    }

    /// Sends bytes, and returns all that comes back until the server closes the connection.
    fn send(&self, request: &str) -> String {
        let mut socket = TcpStream::connect(&self.address).expect("connected");
        socket.write_all(request.as_bytes()).expect("sent");
        let mut reply = Vec::new();
        // The server may close a connection whose last bytes it has not read.
        let _ = socket.read_to_end(&mut reply);
        String::from_utf8_lossy(&reply).into_owned()
    }

    fn get(&self, path: &str) -> Reply {
        Reply::read(&self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)))
    }

    /// A request of the page, with these headers in addition to those that each has.
    fn post_with(&self, path: &str, headers: &str, body: &str) -> Reply {
        let (host, length) = (&self.address, body.len());
        Reply::read(&self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )))
    }

    /// The headers that the page sends.
    fn own_headers(&self, token: &str) -> String {
        format!(
            "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nX-Bunko-Console: 1\r\n\
             Authorization: Bearer {token}\r\n",
            self.address
        )
    }

    fn post(&self, path: &str, token: &str, body: &str) -> Reply {
        self.post_with(path, &self.own_headers(token), body)
    }

    /// Begins a session. Without access control there is no user.
    fn log_in(&self, user: &str, password: &str) -> Result<String, u16> {
        let body = DocumentBuf::new().with("user", user).with("password", password);
        let reply = self.post("/api/login", "", &extended_json::to_relaxed(ValueRef::Document(body.as_ref())));
        let token = reply.body.split('"').nth(3).unwrap_or_default().to_owned();
        if reply.status == 200 { Ok(token) } else { Err(reply.status) }
    }

    /// Runs a command, which is written as in the shell, as the session's user.
    fn run(&self, token: &str, database: &str, command: &str) -> Reply {
        let command = shell::parse_document(command).expect(command);
        let body = DocumentBuf::new().with("database", database).with("command", &command);
        self.post("/api/run", token, &extended_json::to_canonical(ValueRef::Document(body.as_ref())))
    }

    /// Runs a command of a client of the database.
    fn run_as_client(&self, credential: &str, database: &str, command: &str) {
        let uri: Uri =
            format!("mongodb://{credential}{}/?authSource=admin", self.server.address()).parse().expect("valid");
        let command = shell::parse_document(command).expect(command);
        let mut connection = Connection::connect(&uri).expect("connected");
        connection.run_command(database, command.as_ref()).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    }
}

impl Reply {
    fn read(reply: &str) -> Self {
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((reply, ""));
        let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// The reply to a command that succeeded.
    fn expect_ok(self) -> String {
        assert!(self.status == 200 && self.body.contains("\"ok\":1"), "{self:?}");
        self.body
    }
}

/// The names of a server's threads.
fn threads(server: &Server) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("running");
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).ok();
    threads.filter_map(|thread| Some(name(thread.ok()?)?.trim().to_owned())).collect()
}

#[test]
fn a_server_that_is_not_asked_has_no_console() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("started");
    assert!(!server.output_tail().contains("The console"));
    assert!(!threads(&server).contains(&"console-page".to_owned()), "{:?}", threads(&server));
    let site = Site::start(&[]);
    // A thread takes its name when it first runs: one that has answered has it.
    assert_eq!(site.get("/").status, 200);
    assert!(threads(&site.server).contains(&"console-page".to_owned()), "{:?}", threads(&site.server));
}

#[test]
fn the_page_comes_whole_and_cannot_be_framed() {
    let site = Site::start(&[]);
    let page = site.get("/");
    assert!(page.status == 200 && page.body.ends_with("</html>\n"), "{page:?}");
    let scripts = page.body.split("src=\"").skip(1).chain(page.body.split("href=\"/").skip(1));
    assert!(scripts.count() >= 3, "{page:?}");
    for path in ["/", "/main.js", "/console.css", "/icon.svg", "/nothing", "/api/site"] {
        let reply = site.get(path);
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "frame-ancestors 'none'",
            "x-frame-options: deny",
            "x-content-type-options: nosniff",
            "referrer-policy: same-origin",
        ] {
            assert!(reply.head.contains(header), "{path}: {header}: {reply:?}");
        }
        assert!(!reply.head.contains("access-control") && !reply.head.contains("unsafe"), "{reply:?}");
    }
    assert!(site.get("/main.js").head.contains("content-type: text/javascript"));
    let head = site.send(&format!("HEAD / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", site.address));
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn commands_run_on_the_servers_own_connections() {
    let site = Site::start(&[]);
    site.run_as_client("", "shop", "{insert: '<img src=x onerror=alert(1)>', documents: [{_id: '</script><script>'}]}");
    assert!(site.get("/api/site").body.contains("\"login\":false"));
    let token = site.log_in("", "").expect("no login is required");
    let status = site.run(&token, "admin", "{serverStatus: 1}").expect_ok();
    assert!(status.contains("\"opcounters\""), "{status}");
    let found = site.run(&token, "shop", "{find: '<img src=x onerror=alert(1)>', filter: {}}");
    assert!(found.head.contains("content-type: application/json"), "{found:?}");
    assert!(found.expect_ok().contains(r#"[{"_id":"</script><script>"}]"#));
    let running = site.run(&token, "admin", "{aggregate: 1, pipeline: [{$currentOp: {}}], cursor: {}}").expect_ok();
    assert!(running.contains(r#""client":"127.0.0.1:"#) && running.contains("\"maxTimeMS\":30000"), "{running}");
    let failed = site.run(&token, "shop", "{find: 'c', filter: {$no: 1}}");
    assert!(failed.status == 200 && failed.body.contains("\"codeName\":\"BadValue\""), "{failed:?}");
    // The types are kept where the page asks for it.
    let body = r#"{"database":"shop","command":{"hello":1},"canonical":true}"#;
    assert!(site.post("/api/run", &token, body).body.contains("{\"$numberInt\":\"0\"}"));
}

#[test]
fn the_console_only_reads() {
    let site = Site::start(&[]);
    let token = site.log_in("", "").expect("no login is required");
    for command in [
        "{insert: 'c', documents: [{}]}",
        "{drop: 'c'}",
        "{shutdown: 1}",
        "{createUser: 'x', pwd: 'x', roles: []}",
        "{aggregate: 'c', pipeline: [{$out: 'd'}], cursor: {}}",
        "{explain: {aggregate: 'c', pipeline: [{$merge: 'd'}], cursor: {}}}",
        "{find: 'c', $db: 'admin'}",
    ] {
        let reply = site.run(&token, "shop", command);
        assert_eq!(reply.status, 403, "{command}: {reply:?}");
    }
}

#[test]
fn a_command_whose_page_is_left_ends() {
    let site = Site::start(&[]);
    site.run_as_client("", "shop", "{insert: 'c', documents: [{}]}");
    let token = site.log_in("", "").expect("no login is required");
    let running = || {
        let look = "{aggregate: 1, pipeline: [{$currentOp: {}}, {$match: {'command.find': 'c'}}], cursor: {}}";
        site.run(&token, "admin", look).expect_ok().matches("\"opid\"").count()
    };
    let body = r#"{"database":"shop","command":{"find":"c","filter":{"$where":"while (true) {}"}}}"#;
    let mut socket = TcpStream::connect(&site.address).expect("connected");
    let request = format!(
        "POST /api/run HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{}\r\n{body}",
        site.address,
        body.len(),
        site.own_headers(&token)
    );
    socket.write_all(request.as_bytes()).expect("sent");
    bunko_testkit::patience::wait_until("the find runs", || running() == 1);
    drop(socket);
    bunko_testkit::patience::wait_until("the find ends", || running() == 0);
}

#[test]
fn other_machines_reach_no_console_without_tls_and_logins() {
    let dbpath = temporary_dbpath();
    let start = |console: &str| Server::start(&binary(), dbpath.path(), &["--console", console]).expect_err("refused");
    let error = start("0.0.0.0:0");
    assert!(
        error.contains("net.console: 0.0.0.0:0 can be reached from other machines, which needs net.tls.mode"),
        "{error}"
    );
    let error = start("nonsense");
    assert!(error.contains("'nonsense' is not [HOST:]PORT"), "{error}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = taken.local_addr().expect("bound").port();
    let error = start(&port.to_string());
    assert!(error.contains(&format!("the console: cannot bind 127.0.0.1:{port}")), "{error}");
}
