//! What a connection reads from and writes to.

use std::io;
use std::mem::MaybeUninit;
use tokio::io::Interest;
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
pub(crate) trait Socket {
    /// Waits for bytes or the end.
    async fn readable(&self) -> io::Result<()>;
    /// Waits for room to write to.
    async fn writable(&self) -> io::Result<()>;
    /// Waits for what comes next, and leaves it there.
    async fn next(&self) -> io::Result<Next>;
    /// Reads into a buffer; 0 is the end.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Reads into what capacity is left; 0 is the end.
    fn try_append(&self, room: &mut Vec<u8>) -> io::Result<usize>;
    /// Writes as much as there is room for.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl Socket for TcpStream {
    async fn readable(&self) -> io::Result<()> {
        self.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }

    async fn next(&self) -> io::Result<Next> {
        Ok(next_of(self.peek(&mut [0]).await?))
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.try_read(buffer)
    }

    fn try_append(&self, room: &mut Vec<u8>) -> io::Result<usize> {
        self.try_read_buf(room)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }
}

impl Socket for UnixStream {
    async fn readable(&self) -> io::Result<()> {
        self.readable().await
    }

    async fn writable(&self) -> io::Result<()> {
        self.writable().await
    }

    async fn next(&self) -> io::Result<Next> {
        // tokio lends a peek to TCP only.
        let peek = || socket2::SockRef::from(self).peek(&mut [MaybeUninit::uninit()]);
        Ok(next_of(self.async_io(Interest::READABLE, peek).await?))
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.try_read(buffer)
    }

    fn try_append(&self, room: &mut Vec<u8>) -> io::Result<usize> {
        self.try_read_buf(room)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }
}

fn next_of(peeked_bytes: usize) -> Next {
    if peeked_bytes == 0 { Next::End } else { Next::Bytes }
}
