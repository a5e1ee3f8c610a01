//! What the server remembers about one client.

use crate::operations::{Beginning, Operations, Registration, RunningOperation};
use bunko_bson::DocumentBuf;
use bunko_wire::Compressor;
use std::net::SocketAddr;

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
    /// The server's address that the client connected to.
    pub local: SocketAddr,
}

/// State of one connection, changed by its commands.
#[derive(Debug)]
pub struct ClientConnection {
    /// Counted from 1.
    pub id: i32,
    /// Who is at the other end.
    pub peer: Peer,
    /// The `client` document of the handshake; may be given once.
    pub metadata: Option<DocumentBuf>,
    /// Compressors agreed on in the handshake, most wanted first.
    pub compressors: Vec<Compressor>,
    /// Its entry for `currentOp`, from the first command on.
    registration: Option<Registration>,
}

impl ClientConnection {
    /// A connection that has not said hello.
    pub fn new(id: i32, peer: Peer) -> Self {
        Self { id, peer, metadata: None, compressors: Vec::new(), registration: None }
    }

    /// Notes that a command begins.
    pub(crate) fn begin_operation(&mut self, operations: &Operations, beginning: &Beginning<'_>) -> RunningOperation {
        let (id, client) = (self.id, self.peer.address);
        let registration = self.registration.get_or_insert_with(|| operations.register(id, client));
        registration.begin(beginning, self.metadata.as_ref())
    }
}
