//! The client's end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A client with an address.
    Tcp(SocketAddr),
    /// A client on a Unix domain socket, which has no address.
    Unix,
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
