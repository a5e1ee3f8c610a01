//! TLS over TCP, for blocking and non-blocking sockets.

use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// One encrypted connection.
///
/// rustls's own `Stream` is not used: on a non-blocking socket it does not distinguish bytes in the session from bytes
/// that the kernel has taken.
pub(crate) struct TlsStream {
    session: ClientConnection,
    socket: TcpStream,
}

impl TlsStream {
    /// Does the handshake on a blocking socket, within the socket's timeouts.
    pub fn connect(configuration: Arc<ClientConfig>, name: &str, mut socket: TcpStream) -> io::Result<Self> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let mut session = ClientConnection::new(configuration, name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Self { session, socket })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads at least one byte of plain text; 0 is the end of the connection.
    ///
    /// With a buffer of 32 KiB or more no readable bytes stay in the session, where no poll would see them: it holds at
    /// most one incomplete record (18 KiB), and reads 4 KiB at once.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Many servers close without TLS's closing alert. Replies have lengths, so truncation is noticed
                // anyway.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            self.session.read_tls(&mut self.socket)?;
            let processed = self.session.process_new_packets();
            // Alerts and key updates. If the kernel has no room now, the next write sends them.
            let flushed = self.flush();
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            ignore_full(flushed)?;
        }
    }

    /// Takes some bytes; they are sent only after a [`Self::flush`].
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // At most one buffer of the session is unsent at any time.
        self.flush()?;
        let taken = self.session.writer().write(bytes)?;
        ignore_full(self.flush())?;
        Ok(taken)
    }

    /// Passes the session's bytes to the kernel; `WouldBlock` if it does not take all of them.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// Ignores a full kernel buffer.
fn ignore_full(flushed: io::Result<()>) -> io::Result<()> {
    match flushed {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        other => other,
    }
}
