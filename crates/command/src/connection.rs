//! What the server remembers about one client.

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
}

impl ClientConnection {
    /// A connection that has not said hello.
    pub fn new(id: i32, peer: Peer) -> Self {
        Self { id, peer, metadata: None, compressors: Vec::new() }
    }
}
