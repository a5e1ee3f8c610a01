//! The stream of a connection: the plain socket, or TLS on top of it.

use crate::socket::{Next, Socket};
use crate::tls::TlsSession;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

/// Plain until a handshake. Plain connections pay one branch per frame.
pub(crate) struct Stream {
    socket: Arc<Socket>,
    layer: Layer,
}

enum Layer {
    Plain,
    Tls(TlsSession),
}

impl Stream {
    pub fn plain(socket: Arc<Socket>) -> Self {
        Self { socket, layer: Layer::Plain }
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    pub fn is_encrypted(&self) -> bool {
        matches!(self.layer, Layer::Tls(_))
    }

    /// Switches to TLS after a handshake.
    pub fn encrypt(&mut self, session: TlsSession) {
        self.layer = Layer::Tls(session);
    }

    /// Reads as many bytes as `buffer` holds; 0 is the end.
    pub fn poll_read(&mut self, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.layer {
            Layer::Plain => self.socket.poll_read(buffer),
            Layer::Tls(session) => {
                let mut place = 0;
                session.poll_read(&self.socket, buffer.len(), |bytes| {
                    buffer[place..place + bytes.len()].copy_from_slice(bytes);
                    place += bytes.len();
                })
            }
        }
    }

    /// Appends as many bytes as `buffer` has spare capacity; 0 is the end.
    pub async fn read_more(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.layer {
            Layer::Plain => self.socket.read_more(buffer).await,
            Layer::Tls(session) => {
                let room = buffer.capacity() - buffer.len();
                poll_fn(|_| session.poll_read(&self.socket, room, |bytes| buffer.extend_from_slice(bytes))).await
            }
        }
    }

    /// Waits for bytes or the end, without reading.
    pub async fn next(&mut self) -> io::Result<Next> {
        if let Layer::Tls(session) = &mut self.layer
            && session.has_plain()
        {
            return Ok(Next::Bytes);
        }
        self.socket.next().await
    }

    /// Waits until the client is gone or will send no more.
    pub async fn ended(&self) {
        self.socket.ended().await;
    }

    /// Whether `bytes` more bytes can still be read after the client stopped sending. `false` under TLS, where the
    /// amount of plain text is unknown.
    pub fn may_bring(&self, bytes: u64) -> bool {
        !self.is_encrypted() && self.socket.readable_bytes() >= bytes
    }

    /// Writes the bytes that a plain socket takes at once, and returns how many. Under TLS it writes none.
    pub fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.layer {
            Layer::Plain if !bytes.is_empty() => Ok(self.socket.write_now(bytes)?.unwrap_or(0)),
            Layer::Plain | Layer::Tls(_) => Ok(0),
        }
    }

    /// Writes some bytes once the socket takes any. Returns how many. Bytes buffered by TLS leave with the next call,
    /// or with [`Self::flush`].
    pub async fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.layer {
            Layer::Plain => self.socket.write_some(bytes).await,
            Layer::Tls(session) => session.write_some(&self.socket, bytes).await,
        }
    }

    /// Waits until all written bytes have left.
    pub async fn flush(&mut self) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain => Ok(()),
            Layer::Tls(session) => session.flush(&self.socket).await,
        }
    }

    /// Writes all bytes.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain => self.socket.write_all(bytes).await,
            Layer::Tls(session) => session.write_all(&self.socket, bytes).await,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Layer::Tls(session) = &mut self.layer {
            session.close(&self.socket);
        }
    }
}
