//! One blocking connection, for control work.

use crate::cursor::Cursor;
use crate::error::{ClientError, CommandError};
use crate::frame::{FrameWriter, ReplyMode};
use crate::uri::Uri;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_wire::{HEADER_BYTES, Message, WireError, needed_bytes};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// MongoDB 3.6, the first with OP_MSG.
const WIRE_VERSION_MIN: i32 = 6;
/// Pause between attempts while a server is not up yet.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A connection that has shaken hands and runs one command at a time.
pub struct Connection {
    stream: TcpStream,
    address: String,
    hello: DocumentBuf,
    last_request_id: i32,
    /// Reused for requests and replies.
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects and shakes hands; a refused connection is tried again until `uri.connect_timeout` has passed.
    /// # Errors
    /// `Unreachable` after the timeout; `Protocol` or `Command` where the server does not speak OP_MSG.
    pub fn connect(uri: &Uri) -> Result<Self, ClientError> {
        let stream = connect_stream(uri)?;
        let mut connection =
            Self { stream, address: uri.address(), hello: DocumentBuf::new(), last_request_id: 0, buffer: Vec::new() };
        // A listener that never answers must not hang the caller; later commands may take as long as they need.
        connection.stream.set_read_timeout(Some(uri.connect_timeout)).map_err(|cause| connection.lost(cause))?;
        connection.hello = connection.run_command("admin", hello_command(uri).as_ref())?;
        connection.stream.set_read_timeout(None).map_err(|cause| connection.lost(cause))?;
        match connection.hello.as_ref().get("maxWireVersion") {
            Some(ValueRef::Int32(version)) if version < WIRE_VERSION_MIN => Err(connection.violation(format!(
                "its newest wire version is {version}, OP_MSG needs {WIRE_VERSION_MIN} (MongoDB 3.6)"
            ))),
            _ => Ok(connection),
        }
    }

    /// The server's answer to the handshake.
    pub fn hello(&self) -> DocumentRef<'_> {
        self.hello.as_ref()
    }

    /// `host:port` as the caller gave it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Runs a command (without `$db`, which is added) and returns the server's whole reply.
    ///
    /// A reply with `ok: 1` may still hold `writeErrors`: [`crate::check_reply`] finds them.
    /// # Errors
    /// `Command` for `ok: 0`, otherwise what happened to the connection.
    pub fn run_command(&mut self, database: &str, command: DocumentRef<'_>) -> Result<DocumentBuf, ClientError> {
        let body = command.to_owned().with("$db", database);
        self.last_request_id = self.last_request_id.wrapping_add(1);
        self.buffer.clear();
        FrameWriter::new(&mut self.buffer, self.last_request_id, ReplyMode::Expected, body.as_ref())
            .finish()
            .map_err(|error| self.violation(format!("the request is too long: {error}")))?;
        self.stream.write_all(&self.buffer).map_err(|cause| self.lost(cause))?;
        let reply = self.read_reply()?;
        let ok = match reply.as_ref().get("ok") {
            Some(ValueRef::Double(ok)) => ok == 1.0,
            Some(ValueRef::Int32(ok)) => ok == 1,
            Some(ValueRef::Int64(ok)) => ok == 1,
            Some(ValueRef::Boolean(ok)) => ok,
            _ => return Err(CommandError::unreadable(reply.as_ref()).into()),
        };
        if ok { Ok(reply) } else { Err(CommandError::read(reply.as_ref()).into()) }
    }

    /// Runs a command that returns a cursor (`find`, `aggregate`, `listCollections`, ...) and walks all its documents.
    /// # Errors
    /// As [`Self::run_command`]; later batches report theirs through the iterator.
    pub fn find_all(&mut self, database: &str, command: DocumentRef<'_>) -> Result<Cursor<'_>, ClientError> {
        let reply = self.run_command(database, command)?;
        Cursor::new(self, database, &reply)
    }

    /// Lets [`crate::load`] drive the socket.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn lost(&self, cause: io::Error) -> ClientError {
        ClientError::Disconnected { address: self.address.clone(), cause }
    }

    pub(crate) fn violation(&self, detail: String) -> ClientError {
        ClientError::Protocol { address: self.address.clone(), detail }
    }

    /// A frame that is not a reply.
    pub(crate) fn broken(&self, error: &WireError) -> ClientError {
        self.violation(error.to_string())
    }

    fn read_reply(&mut self) -> Result<DocumentBuf, ClientError> {
        self.buffer.resize(HEADER_BYTES, 0);
        self.stream.read_exact(&mut self.buffer).map_err(|cause| self.lost(cause))?;
        let bad_length = || self.violation(format!("a frame of {:?} bytes", self.buffer.first_chunk::<4>()));
        let length = needed_bytes(&self.buffer).ok_or_else(bad_length)?;
        self.buffer.resize(length, 0);
        self.stream.read_exact(&mut self.buffer[HEADER_BYTES..]).map_err(|cause| self.lost(cause))?;
        let message = Message::parse(&self.buffer).map_err(|error| self.broken(&error))?;
        if message.header.response_to == self.last_request_id {
            return Ok(message.body.to_owned());
        }
        let (answered, expected) = (message.header.response_to, self.last_request_id);
        Err(self.violation(format!("a reply to request {answered}, not to {expected}")))
    }
}

fn hello_command(uri: &Uri) -> DocumentBuf {
    let driver = DocumentBuf::new().with("name", "bunko-client").with("version", env!("CARGO_PKG_VERSION"));
    let os = DocumentBuf::new().with("type", std::env::consts::OS).with("architecture", std::env::consts::ARCH);
    let mut client = DocumentBuf::new();
    if let Some(name) = &uri.app_name {
        client.append("application", &DocumentBuf::new().with("name", name));
    }
    client.append("driver", &driver).append("os", &os);
    // The old spelling with helloOk: `hello` itself is unknown to servers before 4.4.2.
    DocumentBuf::new().with("isMaster", 1_i32).with("helloOk", true).with("client", &client)
}

fn connect_stream(uri: &Uri) -> Result<TcpStream, ClientError> {
    let deadline = Instant::now() + uri.connect_timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match try_connect(uri, left) {
            Ok(stream) => return Ok(stream),
            Err(cause)
                if Instant::now() + RETRY_PAUSE >= deadline || cause.kind() != io::ErrorKind::ConnectionRefused =>
            {
                return Err(ClientError::Unreachable { address: uri.address(), timeout: uri.connect_timeout, cause });
            }
            Err(_) => std::thread::sleep(RETRY_PAUSE),
        }
    }
}

fn try_connect(uri: &Uri, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (uri.host.as_str(), uri.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                // Requests are small and waited for: Nagle's algorithm would hold them back.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(cause) => last = cause,
        }
    }
    Err(last)
}
