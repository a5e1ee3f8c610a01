//! A server under test, and peers that send it arbitrary bytes, as no library would.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_testkit::patience::PATIENCE;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use bunko_wire::{HEADER_BYTES, Message, MessageFlags, OpCode, needed_bytes, write_message};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// The server under test: the one that cargo built, or the one that a suite names.
pub fn binary() -> PathBuf {
    std::env::var_os("BUNKO_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_bunko").into(), PathBuf::from)
}

/// Raises this process's limit of open files to its maximum. Servers inherit it.
pub fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("up to the maximum");
}

/// A server on a directory of its own.
pub struct Running {
    pub server: Server,
    _dbpath: tempfile::TempDir,
}

impl Running {
    pub fn start() -> Self {
        let dbpath = temporary_dbpath();
        let server = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
        let running = Self { server, _dbpath: dbpath };
        let reply = running.peer().run("peer", "{insert: 'kept', documents: [{_id: 1, text: 'kept'}]}");
        assert_eq!(shell::print(ValueRef::Document(reply.as_ref())), "{n: 1, ok: 1.0}");
        running
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A new connection.
    pub fn peer(&self) -> Peer {
        Peer::connect(self.address())
    }

    /// Checks that the server still accepts connections, and still has its documents.
    pub fn assert_serves(&self) {
        let mut peer = self.peer();
        assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
        let found = peer.run("peer", "{find: 'kept', filter: {text: 'kept'}}");
        assert_eq!(first_batch(&found), [r#"{_id: 1, text: "kept"}"#]);
    }

    /// Waits until the server has logged those words.
    pub fn assert_logged(&self, words: &str) {
        self.server.logged(words);
    }

    /// Resident memory of the server in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a VmRSS line");
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes * 1024
    }
}

/// The documents of a cursor's first batch, in shell syntax.
pub fn first_batch(reply: &DocumentBuf) -> Vec<String> {
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
    batch.unwrap_or_else(|| panic!("no cursor: {reply:?}")).iter().map(shell::print).collect()
}

/// A command as the body of an OP_MSG.
pub fn command(database: &str, text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}")).with("$db", database)
}

/// An OP_MSG frame with one body.
pub fn message(request_id: i32, flags: MessageFlags, body: DocumentRef<'_>) -> Vec<u8> {
    let mut frame = Vec::new();
    let body = body.as_bytes();
    write_message(&mut frame, request_id, 0, flags, |out| out.extend_from_slice(body)).expect("within the limit");
    frame
}

/// Any frame: a header with the correct length, and the content after it.
pub fn frame(op_code: i32, content: &[u8]) -> Vec<u8> {
    let mut frame = header((HEADER_BYTES + content.len()) as i32, op_code);
    frame.extend_from_slice(content);
    frame
}

/// A header whose length may be wrong.
pub fn header(length: i32, op_code: i32) -> Vec<u8> {
    [length, 77, 0, op_code].iter().flat_map(|field| field.to_le_bytes()).collect()
}

/// An int32 of a frame or document.
pub fn int32_at(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// One connection.
pub struct Peer {
    stream: TcpStream,
    last_request_id: i32,
}

impl Peer {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the server accepts connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        Self { stream, last_request_id: 0 }
    }

    /// Sets the longest wait for each frame from now on.
    pub fn be_patient(&self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).expect("a socket option");
    }

    /// Sends bytes; a server that closes the connection before it has read them all is not an error here.
    pub fn send(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.write_all(bytes) {
            let is_gone = matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
            assert!(is_gone, "cannot send {} bytes: {error}", bytes.len());
        }
    }

    /// Closes the sending side of the connection.
    pub fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).expect("connected");
    }

    /// The next complete frame from the server.
    pub fn frame(&mut self) -> Vec<u8> {
        let mut frame = vec![0; HEADER_BYTES];
        self.stream.read_exact(&mut frame).expect("a header");
        frame.resize(needed_bytes(&frame).expect("a length within limits"), 0);
        self.stream.read_exact(&mut frame[HEADER_BYTES..]).expect("a whole frame");
        frame
    }

    /// At most `count` bytes from the server.
    pub fn some_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let length = self.stream.read(&mut bytes).expect("bytes");
        bytes.truncate(length);
        bytes
    }

    /// Runs a command given in shell syntax.
    pub fn run(&mut self, database: &str, text: &str) -> DocumentBuf {
        self.run_body(command(database, text).as_ref())
    }

    /// Runs a command and prints its reply in shell syntax.
    pub fn text(&mut self, database: &str, text: &str) -> String {
        shell::print(ValueRef::Document(self.run(database, text).as_ref()))
    }

    /// Runs a command with an arbitrary body.
    pub fn run_body(&mut self, body: DocumentRef<'_>) -> DocumentBuf {
        self.last_request_id += 1;
        let request = message(self.last_request_id, MessageFlags::NONE, body);
        self.send(&request);
        self.reply_to(self.last_request_id)
    }

    /// The next frame, which must be an OP_MSG that answers that request and no other.
    pub fn reply_to(&mut self, request_id: i32) -> DocumentBuf {
        let frame = self.frame();
        let reply = Message::parse(&frame).expect("a valid OP_MSG");
        assert_eq!((reply.header.response_to, reply.header.op_code), (request_id, OpCode::Message));
        assert_eq!((reply.flags, reply.sequences().count()), (MessageFlags::NONE, 0));
        reply.body.to_owned()
    }

    /// As [`Self::reply_to`]; `None` if the server closes the connection instead.
    pub fn reply_or_end(&mut self, request_id: i32) -> Option<DocumentBuf> {
        match self.stream.peek(&mut [0]) {
            Ok(0) => None,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            _ => Some(self.reply_to(request_id)),
        }
    }

    /// Checks that the server closes the connection without sending another byte.
    pub fn assert_closed(&mut self, why: &str) {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => {}
            // Unread bytes make the kernel send a reset instead of an end.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{why}: the connection should be closed, not {other:?}"),
        }
    }

    /// Checks that the server sends nothing for that long.
    pub fn assert_silent(&mut self, duration: Duration) {
        self.stream.set_read_timeout(Some(duration)).expect("a socket option");
        let mut byte = [0];
        let error = self.stream.read(&mut byte).expect_err("silence");
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    }
}

/// `code` of a reply or of a write error; 0 if it has none.
pub fn code(document: DocumentRef<'_>) -> i32 {
    if let Some(ValueRef::Int32(code)) = document.get("code") { code } else { 0 }
}

/// `errmsg` of a reply or of a write error.
pub fn errmsg(document: DocumentRef<'_>) -> &str {
    document.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default()
}
