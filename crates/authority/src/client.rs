//! The client of a connection.

use crate::authority::Authority;
use crate::logged_in::LoggedIn;
use crate::login::Login;
use crate::owner::Owner;
use crate::uuid::random_uuid;
use bunko_errors::Result;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

/// The client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client with an address.
    Tcp(SocketAddr),
    /// A client on a Unix domain socket, which has no address.
    Unix,
}

/// The server's end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEnd {
    /// An address.
    Tcp(SocketAddr),
    /// The path of a Unix domain socket.
    Unix(String),
}

/// Bits of an IPv6 address that its holder can usually choose.
const IPV6_HOST_BITS: u32 = 64;

impl Peer {
    /// The client's address; `None` at a Unix domain socket.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.ip()),
            Self::Unix => None,
        }
    }

    /// The unit for limits by address: an IPv4 address, or an IPv6 network of 64 bits. `None` for clients on a Unix
    /// domain socket.
    pub fn network(self) -> Option<IpAddr> {
        Some(match self.ip()?.to_canonical() {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> IPV6_HOST_BITS << IPV6_HOST_BITS))
            }
            IpAddr::V4(address) => IpAddr::V4(address),
        })
    }
}

impl fmt::Display for Peer {
    /// As mongod prints it in its log, in `currentOp` and in `whatsmyuri`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("anonymous unix socket"),
        }
    }
}

/// The client of one connection, and the user that it is logged in as.
#[derive(Debug)]
pub struct Client {
    /// The connection's id, counted from 1. The server's own commands have 0.
    pub id: i32,
    /// The client's end.
    pub peer: Peer,
    /// Subject of the verified certificate that the client showed in its TLS handshake.
    pub certificate_subject: Option<String>,
    /// The server's end, if events are audited.
    pub local: Option<LocalEnd>,
    pub(crate) user: Option<LoggedIn>,
    /// A login that has begun.
    pub(crate) login: Option<Login>,
    /// Generated when it is first needed.
    uuid: OnceLock<[u8; 16]>,
}

impl Client {
    /// A client that is not logged in.
    pub fn new(id: i32, peer: Peer) -> Self {
        Self { id, peer, certificate_subject: None, local: None, user: None, login: None, uuid: OnceLock::new() }
    }

    /// The user who is logged in.
    pub fn user(&self) -> Option<&LoggedIn> {
        self.user.as_ref()
    }

    /// Whether a login has begun and not ended.
    pub fn is_logging_in(&self) -> bool {
        self.login.is_some()
    }

    /// The connection's UUID in `connectionStatus`.
    pub fn uuid(&self, random: &dyn Fn() -> u64) -> [u8; 16] {
        *self.uuid.get_or_init(|| random_uuid(random))
    }

    /// The user as owner of the cursors and operations that the connection begins; `None` if no user is logged in.
    pub fn owner(&self) -> Option<Owner> {
        self.user.as_ref().map(|user| Owner::of_user(user, self.peer.ip()))
    }

    /// Whether users or roles may have changed since the user's rights were read.
    pub fn has_outdated_user(&self, authority: &Authority) -> bool {
        self.user.as_ref().is_some_and(|user| !user.is_current(authority))
    }

    /// Reads the user's rights again. A user who no longer exists is logged out. Returns the owner that the user is now,
    /// if the user has kept all rights from before.
    /// # Errors
    /// If the user cannot be read; the client is logged out then.
    pub fn renew_user(&mut self, authority: &Authority) -> Result<Option<Owner>> {
        let before = self.owner();
        let Some(user) = self.user.take() else { return Ok(None) };
        self.user = user.renewed(authority, self.peer.ip())?;
        let is_still = |now: &&LoggedIn| before.is_some_and(|before| before.is_still(now));
        Ok(self.user.as_ref().filter(is_still).and_then(|_| self.owner()))
    }

    /// Logs the user out.
    pub fn log_out(&mut self) {
        self.user = None;
    }
}
