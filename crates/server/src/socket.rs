//! The socket of a connection.

use bunko_command::LocalEnd;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, ioctl_fionread, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, getsockname, recv, send, sendmsg};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

/// A non-blocking socket, and its readiness.
///
/// No waker is stored here: the executor [`note`](Self::note)s events of the socket and then runs its connection's
/// task. Each event is reported once, so a flag is cleared before the call that it allows.
pub(crate) struct Socket {
    file: OwnedFd,
    /// Bytes may be waiting. A read that does not fill its buffer has emptied the socket, which saves a system call.
    is_readable: AtomicBool,
    is_writable: AtomicBool,
    /// The other side sends no more, or the connection failed; reads tell which.
    is_ended: AtomicBool,
    /// Bytes read and written since the last [`take_moved`](Self::take_moved). Only the thread that runs the connection
    /// writes it.
    moved: AtomicUsize,
}

/// The next thing to read.
pub(crate) enum Next {
    Bytes,
    /// The client is gone, or will send no more.
    End,
}

impl Socket {
    /// `socket` must be in non-blocking mode.
    pub fn new(socket: impl Into<OwnedFd>) -> Self {
        Self {
            file: socket.into(),
            is_readable: AtomicBool::new(false),
            is_writable: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            moved: AtomicUsize::new(0),
        }
    }

    /// The server's address of the connection; `None` for a socket without a name.
    pub fn local_end(&self) -> Option<LocalEnd> {
        let address = getsockname(self).ok()?;
        match SocketAddr::try_from(address.clone()) {
            Ok(address) => Some(LocalEnd::Tcp(address)),
            Err(_) => {
                let address = SocketAddrUnix::try_from(address).ok()?;
                Some(LocalEnd::Unix(address.path_bytes().map(|path| String::from_utf8_lossy(path).into_owned())?))
            }
        }
    }

    /// Notes events.
    pub fn note(&self, flags: EventFlags) {
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            self.is_ended.store(true, Ordering::Release);
        }
        if flags.contains(EventFlags::IN) {
            self.is_readable.store(true, Ordering::Release);
        }
        if flags.contains(EventFlags::OUT) {
            self.is_writable.store(true, Ordering::Release);
        }
    }

    /// Reads as many bytes as `buffer` holds; 0 is the end.
    pub fn poll_read(&self, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let room = buffer.len();
        self.poll_receive(room, || recv(self, &mut *buffer, RecvFlags::empty()))
    }

    /// Appends as many bytes as `buffer` has spare capacity; 0 is the end.
    pub async fn read_more(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let room = buffer.capacity() - buffer.len();
        poll_fn(|_| self.poll_receive(room, || recv(self, spare_capacity(buffer), RecvFlags::empty()))).await
    }

    /// Waits for bytes or the end, without reading.
    pub async fn next(&self) -> io::Result<Next> {
        let received = poll_fn(|_| self.poll_receive(1, || recv(self, &mut [0], RecvFlags::PEEK))).await?;
        Ok(if received == 0 { Next::End } else { Next::Bytes })
    }

    /// Waits until the client is gone or will send no more.
    pub async fn ended(&self) {
        poll_fn(|_| if self.is_ended.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    fn poll_receive<T>(
        &self,
        room: usize,
        receive: impl FnMut() -> rustix::io::Result<(T, usize)>,
    ) -> Poll<io::Result<usize>> {
        if !self.is_readable.swap(false, Ordering::AcqRel) && !self.is_ended.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        match retry_on_intr(receive) {
            Ok((_, length)) => {
                if length == room {
                    self.is_readable.store(true, Ordering::Release);
                }
                self.note_moved(length);
                Poll::Ready(Ok(length))
            }
            Err(Errno::AGAIN) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    /// Writes all bytes.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            bytes = &bytes[self.write_some(bytes).await?..];
        }
        Ok(())
    }

    /// Writes some bytes once the socket takes any. Returns how many.
    pub async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(sent) = self.write_now(bytes)? {
                return Ok(sent);
            }
            self.writable().await;
        }
    }

    /// Writes the bytes that the socket takes at once. Returns how many; `None` if it takes none.
    pub fn write_now(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        self.is_writable.store(false, Ordering::Release);
        match retry_on_intr(|| send(self, bytes, SendFlags::NOSIGNAL)) {
            Ok(sent) => {
                self.note_moved(sent);
                Ok(Some(sent))
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn note_moved(&self, bytes: usize) {
        self.moved.store(self.moved.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Returns the number of bytes read and written since the last call.
    pub fn take_moved(&self) -> usize {
        let moved = self.moved.load(Ordering::Relaxed);
        if moved > 0 {
            self.moved.store(0, Ordering::Relaxed);
        }
        moved
    }

    /// Number of bytes that wait to be read.
    pub fn readable_bytes(&self) -> u64 {
        ioctl_fionread(self).unwrap_or(0)
    }

    /// Writes the bytes that the socket takes at once; `WouldBlock` if it takes none.
    pub fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.is_writable.store(false, Ordering::Release);
        let send = || sendmsg(self, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
        Ok(retry_on_intr(send)?)
    }

    /// Waits until the socket takes more bytes.
    pub async fn writable(&self) {
        poll_fn(|_| if self.is_writable.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn pair() -> (UnixStream, Socket) {
        let (client, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        (client, Socket::new(server))
    }

    #[test]
    fn a_read_that_leaves_room_is_not_tried_again_before_more_is_noted() {
        let (mut client, socket) = pair();
        client.write_all(b"ab").unwrap();
        assert!(socket.poll_read(&mut [0; 8]).is_pending());
        socket.note(EventFlags::IN);
        assert!(matches!(socket.poll_read(&mut [0; 8]), Poll::Ready(Ok(2))));
        client.write_all(b"c").unwrap();
        assert!(socket.poll_read(&mut [0; 8]).is_pending());
        socket.note(EventFlags::IN);
        // The buffer was full, so more bytes may be waiting.
        assert!(matches!(socket.poll_read(&mut [0; 1]), Poll::Ready(Ok(1))));
        client.write_all(b"d").unwrap();
        assert!(matches!(socket.poll_read(&mut [0; 8]), Poll::Ready(Ok(1))));
    }

    #[test]
    fn the_end_is_seen_behind_the_last_bytes() {
        let (mut client, socket) = pair();
        client.write_all(b"ab").unwrap();
        drop(client);
        // One event reports both.
        socket.note(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP);
        assert!(matches!(socket.poll_read(&mut [0; 8]), Poll::Ready(Ok(2))));
        assert!(matches!(socket.poll_read(&mut [0; 8]), Poll::Ready(Ok(0))));
    }

    #[test]
    fn a_look_leaves_the_bytes() {
        let (mut client, socket) = pair();
        client.write_all(b"a").unwrap();
        socket.note(EventFlags::IN);
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(pin!(socket.next()).poll(&mut context), Poll::Ready(Ok(Next::Bytes))));
        assert!(matches!(socket.poll_read(&mut [0; 8]), Poll::Ready(Ok(1))));
    }

    #[test]
    fn a_write_waits_for_room() {
        let (mut client, socket) = pair();
        let bytes = vec![7; 4 << 20];
        let mut context = Context::from_waker(Waker::noop());
        let mut write = pin!(socket.write_all(&bytes));
        let (mut received, mut rounds) = (Vec::new(), 0);
        let mut buffer = vec![0; 1 << 20];
        while write.as_mut().poll(&mut context).is_pending() {
            assert!(write.as_mut().poll(&mut context).is_pending());
            let length = client.read(&mut buffer).unwrap();
            received.extend_from_slice(&buffer[..length]);
            socket.note(EventFlags::OUT);
            rounds += 1;
        }
        assert!(rounds > 0);
        client.set_nonblocking(true).unwrap();
        while let Ok(length) = client.read(&mut buffer) {
            received.extend_from_slice(&buffer[..length]);
        }
        assert_eq!(received, bytes);
    }
}
