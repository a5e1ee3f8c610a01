//! Connections from inside the process.
//!
//! A part of the process that serves clients by another protocol runs its commands on such connections. They pass the
//! same limits, checks of privileges and counters as connections from a socket that listens.

use crate::socket::Socket;
use bunko_command::Client;
use std::io;
use std::os::unix::net::UnixStream;
use tokio::sync::mpsc;

/// Maximum number of connections that wait to be accepted.
const WAITING_MAX: usize = 16;

/// The end of a doorway at which connections are opened.
#[derive(Clone, Debug)]
pub struct Doorway(mpsc::Sender<Visitor>);

/// The end of a doorway at which a server accepts connections ([`crate::ServerOptions::entrance`]).
#[derive(Debug)]
pub struct Entrance(mpsc::Receiver<Visitor>);

/// A connection that waits to be accepted.
pub(crate) struct Visitor {
    pub socket: Socket,
    /// The client at the other end, which may be logged in already.
    pub client: Client,
}

/// Both ends of a new doorway.
pub fn doorway() -> (Doorway, Entrance) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Doorway(sender), Entrance(receiver))
}

impl Doorway {
    /// Opens a connection for that client, and returns the client's end of it, which does not block.
    /// # Errors
    /// If the process has no descriptor left; `WouldBlock` if `WAITING_MAX` connections wait; `BrokenPipe` if the
    /// server has ended.
    pub fn connect(&self, client: Client) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let visitor = Visitor { socket: Socket::new(theirs), client };
        self.0.try_send(visitor).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => io::ErrorKind::WouldBlock.into(),
            mpsc::error::TrySendError::Closed(_) => io::Error::from(io::ErrorKind::BrokenPipe),
        })?;
        Ok(ours)
    }
}

impl Entrance {
    /// Waits for the next connection; `None` once no more can be opened.
    pub(crate) async fn next(&mut self) -> Option<Visitor> {
        self.0.recv().await
    }
}

impl std::fmt::Debug for Visitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visitor").field("client", &self.client.peer).finish_non_exhaustive()
    }
}
