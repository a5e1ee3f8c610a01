//! Connections for other protocols than the database's, such as HTTP: bytes over TCP, or over TLS as clients of the database
//! use it.

use crate::stream::{DialError, Stream};
use crate::tls::{self, TlsOptions};
use crate::uri::Host;
use rustls::ClientConfig;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Opens connections to one port. It reads the files of the TLS options once.
pub struct ByteDialer {
    host: Host,
    tls: Option<Arc<ClientConfig>>,
}

/// Bytes over TCP or TLS.
pub struct ByteStream(Stream);

impl ByteDialer {
    /// A dialer for a host's name or address, an IPv6 address without brackets.
    /// # Errors
    /// A sentence that names the file of the TLS options that cannot be used.
    pub fn new(host: &str, port: u16, tls: Option<&TlsOptions>) -> Result<Self, String> {
        let tls = tls.map(tls::configuration).transpose()?;
        Ok(Self { host: Host::Tcp { name: host.to_owned(), port }, tls })
    }

    /// Connects, until `deadline`. A name lookup takes as long as the system's resolver does.
    /// # Errors
    /// If no address of the host accepts the connection, or the TLS handshake fails.
    pub fn dial(&self, deadline: Instant) -> io::Result<ByteStream> {
        let dialed = Stream::dial(&self.host, self.tls.as_ref(), deadline);
        dialed.map(ByteStream).map_err(|error| match error {
            DialError::Unreachable(cause) => cause,
            DialError::Tls(cause) => io::Error::new(cause.kind(), format!("TLS: {cause}")),
        })
    }
}

impl ByteStream {
    /// Sets the longest wait of one read or write.
    /// # Errors
    /// If `timeout` is zero.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.0.set_timeouts(Some(timeout))
    }
}

impl Read for ByteStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for ByteStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
