//! A connection to the server, as a client has one: requests and replies in OP_MSG.

use crate::guard::Refusal;
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_operation::{Draw, Purpose, ServerMemory};
use bunko_wire::{HEADER_BYTES, Message, MessageFlags, begin_message, needed_bytes};
use hyper::StatusCode;
use std::io;
use std::sync::Arc;
use tokio::net::UnixStream;

/// Longest reply that is read, in bytes.
pub const REPLY_BYTES_MAX: usize = 4 << 20;
/// Memory of a reply, as a multiple of its bytes: the message, its document, and its text.
const REPLY_FACTOR: u64 = 7;

/// A connection on which one command runs at a time. Dropping it ends its command.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    last_request_id: i32,
}

/// A reply, and the memory that was drawn for it and its text.
pub struct Received {
    pub document: DocumentBuf,
    pub draw: Draw,
}

/// The text of a reply, which keeps its memory until it is sent.
pub struct HeldText {
    pub text: String,
    pub draw: Draw,
}

impl AsRef<[u8]> for HeldText {
    fn as_ref(&self) -> &[u8] {
        debug_assert!(self.draw.bytes() > 0);
        self.text.as_bytes()
    }
}

impl Link {
    /// Must be called in the port's runtime.
    /// # Errors
    /// If the runtime cannot watch the socket.
    pub fn new(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Ok(Self { stream: UnixStream::from_std(stream)?, last_request_id: 0 })
    }

    /// Runs a command, which has its `$db`. After an error the connection cannot be used again.
    /// # Errors
    /// If the server closes the connection, the reply is too long, or there is no memory for it.
    pub async fn run(&mut self, command: DocumentRef<'_>, memory: &Arc<ServerMemory>) -> Result<Received, Refusal> {
        self.last_request_id += 1;
        let mut request = Vec::new();
        let start = begin_message(&mut request, self.last_request_id, 0, MessageFlags::NONE);
        request.extend_from_slice(command.as_bytes());
        start.finish(&mut request).map_err(|error| Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()))?;
        self.write_all(&request).await.map_err(|error| lost(&error))?;
        drop(request);
        let mut header = [0; HEADER_BYTES];
        self.read_exact(&mut header).await.map_err(|error| lost(&error))?;
        let length = needed_bytes(&header).unwrap_or(usize::MAX);
        if length > REPLY_BYTES_MAX {
            let reason = format!("the reply has {length} bytes, and this page takes {REPLY_BYTES_MAX}: ask for less");
            return Err(Refusal::new(StatusCode::INSUFFICIENT_STORAGE, reason));
        }
        let draw = memory.draw(length as u64 * REPLY_FACTOR, Purpose::Reply).ok_or_else(|| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server has no memory for the reply now")
        })?;
        let mut frame = header.to_vec();
        frame.resize(length, 0);
        self.read_exact(&mut frame[HEADER_BYTES..]).await.map_err(|error| lost(&error))?;
        let message = Message::parse(&frame)
            .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        Ok(Received { document: message.body.to_owned(), draw })
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn read_exact(&self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            self.stream.readable().await?;
            match self.stream.try_read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn lost(error: &io::Error) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, format!("the server closed the connection: {error}"))
}
