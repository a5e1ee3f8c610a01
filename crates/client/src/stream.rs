//! The connection's bytes: over TCP, a Unix socket, or TLS over TCP.

use crate::tls::TlsStream;
use crate::uri::Host;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt;
use rustls::ClientConfig;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shortest timeout that is set on a socket: 0 would mean none.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);
/// Silence of the server after which the kernel asks whether it is still there.
/// Source: the driver for Node.js, `keepAliveInitialDelay`.
const KEEP_ALIVE_IDLE: Duration = Duration::from_mins(2);
/// Pause between two such questions.
const KEEP_ALIVE_PAUSE: Duration = Duration::from_secs(10);
/// Unanswered questions after which the connection is lost.
const KEEP_ALIVE_QUESTIONS: u32 = 9;

/// A connection's byte stream. It is an enum and not a trait object, because a load reads and writes millions of times.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    // Boxed, because its session is some 1 KiB of state.
    Tls(Box<TlsStream>),
}

/// A failed attempt to connect.
pub(crate) enum DialError {
    /// No server accepted the connection.
    Unreachable(io::Error),
    /// A server accepted, and the TLS handshake failed.
    Tls(io::Error),
}

impl Stream {
    /// Connects, with TLS if there is a configuration for it. The socket's timeouts are left at the rest of the time
    /// until `deadline`. A name lookup takes as long as the system's resolver does.
    pub fn dial(host: &Host, tls: Option<&Arc<ClientConfig>>, deadline: Instant) -> Result<Self, DialError> {
        match host {
            Host::Unix(path) => {
                let stream = Self::Unix(UnixStream::connect(path).map_err(DialError::Unreachable)?);
                stream.set_timeouts(Some(until(deadline))).map_err(DialError::Unreachable)?;
                Ok(stream)
            }
            Host::Tcp { name, port } => {
                let socket = dial_tcp(name, *port, deadline).map_err(DialError::Unreachable)?;
                set_tcp_timeouts(&socket, Some(until(deadline))).map_err(DialError::Unreachable)?;
                let Some(tls) = tls else { return Ok(Self::Tcp(socket)) };
                let stream = TlsStream::connect(Arc::clone(tls), name, socket).map_err(DialError::Tls)?;
                Ok(Self::Tls(Box::new(stream)))
            }
        }
    }

    /// Sets the longest wait of one read or write; `None` waits forever.
    pub fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => set_tcp_timeouts(socket, timeout),
            Self::Tls(stream) => set_tcp_timeouts(stream.socket(), timeout),
            Self::Unix(socket) => {
                socket.set_read_timeout(timeout)?;
                socket.set_write_timeout(timeout)
            }
        }
    }

    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.set_nonblocking(nonblocking),
            Self::Tcp(socket) => socket.set_nonblocking(nonblocking),
            Self::Tls(stream) => stream.socket().set_nonblocking(nonblocking),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Bytes written to TLS may still be in the session; `WouldBlock` means that some are.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
            Self::Tls(stream) => stream.socket().as_fd(),
        }
    }
}

fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(TIMEOUT_MIN)
}

fn set_tcp_timeouts(socket: &TcpStream, timeout: Option<Duration>) -> io::Result<()> {
    socket.set_read_timeout(timeout)?;
    socket.set_write_timeout(timeout)
}

/// Tries the name's addresses in order; each may take the time that the earlier ones left.
fn dial_tcp(name: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host name has no address");
    for address in (name, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, until(deadline)) {
            Ok(stream) => {
                // Requests are small and their replies are awaited: Nagle's algorithm would delay them.
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                return Ok(stream);
            }
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

/// Lets a wait for a reply end if the server's machine vanishes: without questions of the kernel it would last for
/// ever, because commands have no timeout unless `socketTimeoutMS` gives them one.
fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEP_ALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEP_ALIVE_PAUSE)?;
    sockopt::set_tcp_keepcnt(socket, KEEP_ALIVE_QUESTIONS)?;
    Ok(())
}
