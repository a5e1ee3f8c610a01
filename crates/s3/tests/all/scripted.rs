//! A server that does with each request what a script says, and notes the requests.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

/// The server's reaction to one request.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// An answer: status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// The connection ends without an answer.
    Cut,
    /// As `Answer`, with one byte less than the header `Content-Length` says.
    CutAnswer(String),
    /// The connection stays open, without an answer.
    Silence,
}

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// Method and path with the query.
    pub line: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Noted {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// The server. It ends with the process.
pub struct Scripted {
    pub endpoint: String,
    noted: Arc<Mutex<Vec<Noted>>>,
    script: Arc<Mutex<VecDeque<Reaction>>>,
}

/// A connection.
pub trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

impl Scripted {
    /// Starts a server without TLS.
    pub fn start(script: Vec<Reaction>) -> Self {
        Self::start_over("http", script, |socket| Box::new(socket))
    }

    /// Starts a server whose connections `wrap` makes of sockets.
    pub fn start_over(
        scheme: &str,
        script: Vec<Reaction>,
        wrap: impl Fn(std::net::TcpStream) -> Box<dyn Wire> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (noted, script) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(VecDeque::from(script))));
        let server = Self {
            endpoint: format!("{scheme}://localhost:{port}"),
            noted: Arc::clone(&noted),
            script: Arc::clone(&script),
        };
        thread::spawn(move || {
            let mut silent = Vec::new();
            for socket in listener.incoming() {
                let mut wire = BufReader::new(wrap(socket.expect("a socket")));
                // A client that gives up during the handshake sends nothing.
                let Some(request) = read(&mut wire) else { continue };
                noted.lock().expect("no panic").push(request);
                let reaction = script.lock().expect("no panic").pop_front();
                match reaction.expect("the script has a reaction") {
                    Reaction::Answer(status, headers, body) => {
                        answer(wire.get_mut(), status, &headers, &body, body.len());
                    }
                    Reaction::CutAnswer(body) => answer(wire.get_mut(), 200, &[], &body[1..], body.len()),
                    Reaction::Cut => {}
                    Reaction::Silence => silent.push(wire),
                }
            }
        });
        server
    }

    /// A server that has ended.
    pub fn gone() -> Self {
        Self { endpoint: "http://127.0.0.1:1".to_owned(), noted: Arc::default(), script: Arc::default() }
    }

    /// All requests so far. The whole script was used.
    pub fn requests(&self) -> Vec<Noted> {
        assert!(self.script.lock().expect("no panic").is_empty(), "{:?}", self.script);
        self.noted.lock().expect("no panic").clone()
    }

    /// The lines of all requests.
    pub fn lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.line).collect()
    }
}

fn read(wire: &mut BufReader<Box<dyn Wire>>) -> Option<Noted> {
    let mut request = Noted::default();
    let mut line = String::new();
    wire.read_line(&mut line).ok()?;
    line.trim_end().strip_suffix(" HTTP/1.1")?.clone_into(&mut request.line);
    loop {
        line.clear();
        wire.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    wire.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn answer(wire: &mut dyn Wire, status: u16, headers: &[(&str, String)], body: &str, length: usize) {
    let mut head = format!("HTTP/1.1 {status} S\r\nContent-Length: {length}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head = head + name + ": " + value + "\r\n";
    }
    head += "\r\n";
    // A client that has given up is no failure of the test.
    let _ = wire.write_all(head.as_bytes()).and_then(|()| wire.write_all(body.as_bytes())).and_then(|()| wire.flush());
}
