//! An encrypted connection: plain text on this side, TLS records on the socket.

use crate::socket::Socket;
use bunko_certificates::Details;
use bunko_observe::TlsVersion;
use rustls::{Error, ProtocolVersion, ServerConnection};
use std::cell::RefCell;
use std::io::{self, BufRead, IoSlice, Write};
use std::task::{Poll, ready};

/// Maximum number of bytes of records taken from the socket at once.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    /// Receives records; shared, so that idle connections need no buffer.
    static RECORDS: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A TLS session after or during its handshake.
///
/// While the connection waits for the socket, the session holds no unread plain text.
pub(crate) struct TlsSession {
    connection: Box<ServerConnection>,
    /// Records that were read but not decrypted for lack of room; usually none.
    unopened: Vec<u8>,
}

impl TlsSession {
    pub fn new(connection: ServerConnection) -> Self {
        Self { connection: Box::new(connection), unopened: Vec::new() }
    }

    /// Takes the client's bytes of the handshake.
    pub fn accept(&mut self, records: &[u8]) -> Result<(), Error> {
        let mut rest = records;
        while !rest.is_empty() {
            let taken = self.connection.read_tls(&mut rest).map_err(|error| Error::General(error.to_string()))?;
            self.connection.process_new_packets()?;
            if taken == 0 {
                break;
            }
        }
        Ok(())
    }

    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    pub fn version(&self) -> TlsVersion {
        match self.connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => TlsVersion::V1_3,
            _ => TlsVersion::V1_2,
        }
    }

    /// The name under which the client addressed this server (SNI); `None` if it sent none.
    pub fn server_name(&self) -> Option<Box<str>> {
        self.connection.server_name().map(Into::into)
    }

    /// The subject of the client's certificate; `None` if the client sent none.
    pub fn client_subject(&self) -> Option<String> {
        self.connection.peer_certificates()?.first().and_then(Details::of).map(|details| details.subject)
    }

    /// Passes at most `room` bytes of plain text to `sink`. 0 is the end of the stream.
    pub fn poll_read(&mut self, socket: &Socket, room: usize, mut sink: impl FnMut(&[u8])) -> Poll<io::Result<usize>> {
        RECORDS.with_borrow_mut(|records| {
            loop {
                let left = self.take_plain(room, &mut sink)?;
                if left.taken > 0 || left.is_end {
                    return Poll::Ready(Ok(left.taken));
                }
                if !self.unopened.is_empty() {
                    let unopened = std::mem::take(&mut self.unopened);
                    let taken = self.open(socket, &unopened, room, &mut sink)?;
                    if taken > 0 {
                        return Poll::Ready(Ok(taken));
                    }
                }
                let length = records.len().min(room);
                let length = ready!(socket.poll_read(&mut records[..length]))?;
                if length == 0 {
                    // Many clients close without a TLS close_notify. Frames have lengths, so a truncation is still
                    // noticed.
                    return Poll::Ready(Ok(0));
                }
                let taken = self.open(socket, &records[..length], room, &mut sink)?;
                if taken > 0 {
                    return Poll::Ready(Ok(taken));
                }
            }
        })
    }

    fn open(
        &mut self,
        socket: &Socket,
        mut records: &[u8],
        room: usize,
        sink: &mut impl FnMut(&[u8]),
    ) -> io::Result<usize> {
        let mut taken = 0;
        while !records.is_empty() {
            if taken == room {
                self.unopened = records.to_vec();
                break;
            }
            let read = self.connection.read_tls(&mut records)?;
            if let Err(error) = self.connection.process_new_packets() {
                self.try_flush(socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            taken += self.take_plain(room - taken, sink)?.taken;
            // Bytes after the client's close_notify are ignored.
            if read == 0 {
                break;
            }
        }
        Ok(taken)
    }

    fn take_plain(&mut self, room: usize, sink: &mut impl FnMut(&[u8])) -> io::Result<Plain> {
        let mut reader = self.connection.reader();
        let mut taken = 0;
        while taken < room {
            let length = match reader.fill_buf() {
                Ok([]) => return Ok(Plain { taken, is_end: true }),
                Ok(bytes) => {
                    let bytes = &bytes[..bytes.len().min(room - taken)];
                    sink(bytes);
                    bytes.len()
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            reader.consume(length);
            taken += length;
        }
        Ok(Plain { taken, is_end: false })
    }

    /// Whether plain text can be read without the socket.
    pub fn has_plain(&mut self) -> bool {
        !self.unopened.is_empty() || self.connection.reader().fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    /// Encrypts all bytes, and returns when the socket has taken them.
    pub async fn write_all(&mut self, socket: &Socket, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[self.write_some(socket, bytes).await?..];
            self.flush(socket).await?;
        }
        Ok(())
    }

    /// Sends the earlier bytes, then takes some of `bytes`. Returns how many.
    pub async fn write_some(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        self.flush(socket).await?;
        // The writer takes as much as its buffer holds, which is all of most replies.
        let taken = self.connection.writer().write(bytes)?;
        self.try_flush(socket);
        Ok(taken)
    }

    /// Sends all buffered records.
    pub async fn flush(&mut self, socket: &Socket) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Outgoing(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends as many buffered records as the socket takes at once.
    pub fn try_flush(&mut self, socket: &Socket) {
        while self.connection.wants_write() && self.connection.write_tls(&mut Outgoing(socket)).is_ok() {}
    }

    /// Sends a close_notify.
    pub fn close(&mut self, socket: &Socket) {
        self.connection.send_close_notify();
        self.try_flush(socket);
    }
}

/// The result of a read.
struct Plain {
    taken: usize,
    is_end: bool,
}

struct Outgoing<'s>(&'s Socket);

impl Write for Outgoing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_send(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
