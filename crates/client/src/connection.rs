//! One blocking connection, for control work.

use crate::error::{ClientError, CommandError, is_timeout};
use crate::frame::{FrameWriter, ReplyMode};
use crate::settings::Settings;
use crate::stream::{DialError, Stream};
use crate::topology::Role;
use crate::uri::Host;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_wire::{HEADER_BYTES, Message, WireError, needed_bytes};
use rustix::fd::{AsFd, OwnedFd};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// MongoDB 3.6, the first with OP_MSG.
const WIRE_VERSION_MIN: i32 = 6;

/// A connection that has completed its handshake and runs one command at a time.
pub struct Connection {
    stream: Stream,
    settings: Arc<Settings>,
    host: Host,
    address: String,
    hello: DocumentBuf,
    last_request_id: i32,
    /// Reused for requests and replies.
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects and does the handshake.
    pub(crate) fn introduce(
        settings: &Arc<Settings>,
        host: &Host,
        deadline: Instant,
        hello: DocumentRef<'_>,
    ) -> Result<Self, ClientError> {
        let address = host.to_string();
        let stream = Stream::dial(host, settings.tls.as_ref(), deadline).map_err(|error| match error {
            DialError::Unreachable(cause) => {
                let timeout = settings.uri.connect_timeout;
                ClientError::Unreachable { address: address.clone(), timeout, cause }
            }
            DialError::Tls(cause) => {
                let late = is_timeout(&cause).then(|| "no answer in time".to_owned());
                ClientError::Tls { address: address.clone(), detail: late.unwrap_or_else(|| cause.to_string()) }
            }
        })?;
        let mut connection = Self {
            stream,
            settings: Arc::clone(settings),
            host: host.clone(),
            address,
            hello: DocumentBuf::new(),
            last_request_id: 0,
            buffer: Vec::new(),
        };
        connection.hello = connection.run_command("admin", hello)?;
        match connection.hello.as_ref().get("maxWireVersion") {
            Some(ValueRef::Int32(version)) if version < WIRE_VERSION_MIN => Err(connection.violation(format!(
                "its newest wire version is {version}, OP_MSG needs {WIRE_VERSION_MIN} (MongoDB 3.6)"
            ))),
            _ => Ok(connection),
        }
    }

    /// The settings that all connections of its URI share.
    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The server's answer to the handshake.
    pub fn hello(&self) -> DocumentRef<'_> {
        self.hello.as_ref()
    }

    /// The server at the other end: a host of the URI, or a member that one of them listed.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The `$readPreference` that reads must carry for this server to serve them as the URI asks; `None` where they
    /// need none. [`Self::run_command`] and cursors do not add it: the caller knows which commands are reads.
    pub fn read_preference(&self) -> Option<DocumentBuf> {
        self.role().read_preference(&self.settings.uri)
    }

    pub(crate) fn role(&self) -> Role {
        Role::of(self.hello())
    }

    /// Sets the longest wait of one read or write; `None` waits forever.
    /// # Errors
    /// `Disconnected`, if the system refuses.
    pub fn set_timeouts(&self, timeout: Option<Duration>) -> Result<(), ClientError> {
        self.stream.set_timeouts(timeout).map_err(|cause| self.lost(cause))
    }

    /// `host:port` of the server.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Runs a command and returns the server's whole reply. The command comes without `$db`, which is added here.
    ///
    /// A reply with `ok: 1` may still contain `writeErrors`: [`crate::check_reply`] finds them.
    /// # Errors
    /// `Command` for `ok: 0`; otherwise the connection's error.
    pub fn run_command(&mut self, database: &str, command: DocumentRef<'_>) -> Result<DocumentBuf, ClientError> {
        self.run_with_sequence(database, command, "", &[])
    }

    /// As [`Self::run_command`], with a document sequence in the place of the field `name`, unless it is empty.
    /// # Errors
    /// As [`Self::run_command`].
    pub fn run_with_sequence(
        &mut self,
        database: &str,
        command: DocumentRef<'_>,
        name: &str,
        documents: &[DocumentBuf],
    ) -> Result<DocumentBuf, ClientError> {
        let body = command.to_owned().with("$db", database);
        self.last_request_id = self.last_request_id.wrapping_add(1);
        self.buffer.clear();
        let mut frame = FrameWriter::new(&mut self.buffer, self.last_request_id, ReplyMode::Expected, body.as_ref());
        if !documents.is_empty() {
            let write = |out: &mut Vec<u8>| {
                for document in documents {
                    out.extend_from_slice(document.as_ref().as_bytes());
                }
            };
            frame.sequence(name, write);
        }
        frame.finish().map_err(|error| self.violation(format!("the request is too long: {error}")))?;
        let sent = self.stream.write_all(&self.buffer).and_then(|()| self.stream.flush());
        sent.map_err(|cause| self.lost(cause))?;
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

    /// Another descriptor of the socket, with which another thread can shut it down while this one waits for a reply;
    /// `None` if the process has no descriptor left.
    pub fn socket_copy(&self) -> Option<OwnedFd> {
        self.stream.as_fd().try_clone_to_owned().ok()
    }

    /// The socket, for [`crate::load`].
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// As [`Self::stream`], for reading and writing.
    pub(crate) fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    pub(crate) fn lost(&self, cause: io::Error) -> ClientError {
        ClientError::Disconnected { address: self.address.clone(), cause }
    }

    pub(crate) fn violation(&self, detail: String) -> ClientError {
        ClientError::Protocol { address: self.address.clone(), detail }
    }

    /// The error for a frame that is not a reply.
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
