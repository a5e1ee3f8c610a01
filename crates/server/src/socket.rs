//! What a connection reads from and writes to.

use std::io;
use std::mem::MaybeUninit;
use tokio::io::{AsyncRead, Interest};
use tokio::net::{TcpStream, UnixStream};

/// A connection's socket on its way to its thread, non-blocking.
pub(crate) enum Stream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// What waits to be read.
pub(crate) enum Next {
    Bytes,
    /// The client is gone, or will send nothing more.
    End,
}

/// What a session does with its socket. Sessions are generic over it, and no trait object or enum stands in the way of
/// a byte: TCP pays nothing for there being Unix sockets.
///
/// Bytes come in by `AsyncRead` alone: a read that leaves room tells the runtime that the socket is empty. With
/// `try_read` it takes one more system call for every request to find that out.
pub(crate) trait Socket: AsyncRead + Unpin {
    /// Waits for room to write to.
    async fn writable(&self) -> io::Result<()>;
    /// Waits for what comes next, and leaves it there.
    async fn next(&self) -> io::Result<Next>;
    /// Writes as much as there is room for.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl Socket for TcpStream {
    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }

    async fn next(&self) -> io::Result<Next> {
        Ok(next_of(self.peek(&mut [0]).await?))
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }
}

impl Socket for UnixStream {
    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }

    async fn next(&self) -> io::Result<Next> {
        // tokio lends a peek to TCP only.
        let peek = || socket2::SockRef::from(self).peek(&mut [MaybeUninit::uninit()]);
        Ok(next_of(self.async_io(Interest::READABLE, peek).await?))
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }
}

fn next_of(peeked_bytes: usize) -> Next {
    if peeked_bytes == 0 { Next::End } else { Next::Bytes }
}
