//! Reasons why a connection ends, and their log lines.

use crate::first_bytes::Foreign;
use crate::held_memory::TooMuch;
use crate::newcomer::Newcomer;
use crate::tls::HandshakeError;
use bunko_command::Peer;
use bunko_wire::WireError;
use std::io::{self, ErrorKind};

/// The reason why a connection ends.
pub(super) enum Ended {
    /// The client hung up while it was being answered, or without closing properly.
    HungUp,
    Socket,
    /// The TLS records cannot be read.
    Unreadable(io::Error),
    Malformed(WireError),
    Foreign(Foreign),
    Handshake(HandshakeError),
    Storage,
    FailPoint,
    /// The client took too long before it logged in.
    Late,
    /// The connections of all clients that have not logged in hold too much memory together.
    Crowded,
    /// The client did not read its replies, and other clients need their memory.
    Unread,
    /// The client stopped in the middle of a message, and other clients need its memory.
    Stalled,
    /// There was no memory for the client's message, and no way to answer.
    NoRoom,
}

impl From<TooMuch> for Ended {
    fn from(_: TooMuch) -> Self {
        Self::Crowded
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Only TLS fails with this kind, never the socket.
            ErrorKind::InvalidData => Self::Unreadable(error),
            ErrorKind::BrokenPipe
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof => Self::HungUp,
            _ => Self::Socket,
        }
    }
}

impl From<WireError> for Ended {
    fn from(error: WireError) -> Self {
        Self::Malformed(error)
    }
}

impl Ended {
    /// Logs a warning if an operator should know, and returns the reason in a few words.
    pub(super) fn tell(&self, id: i32, peer: Peer, newcomer: Option<&Newcomer>) -> &'static str {
        match self {
            Self::HungUp => "the client hung up",
            Self::Socket => "the socket failed",
            Self::Unreadable(error) => {
                tracing::warn!(target: "NETWORK", id = 118, ctx = format!("conn{id}"), remote = %peer, error = %error, "Closing a connection that sent malformed TLS records");
                "TLS cannot read what came"
            }
            Self::Malformed(error) => {
                tracing::warn!(target: "NETWORK", id = 22988, ctx = format!("conn{id}"), remote = %peer, error = %error, beforeLogin = newcomer.is_some(), "Closing a connection that sent a malformed frame");
                "a malformed frame"
            }
            Self::Storage => "the log failed",
            Self::Late => {
                tracing::warn!(target: "NETWORK", id = 115, ctx = format!("conn{id}"), remote = %peer, "Closing a connection that has not logged in and took too long to send a message, to read a reply or to log in");
                "too slow before a login"
            }
            Self::Crowded => {
                tracing::warn!(target: "NETWORK", id = 116, ctx = format!("conn{id}"), remote = %peer, "Closing a connection because connections without a login hold too much memory");
                "too much held before a login"
            }
            Self::Unread => {
                tracing::warn!(target: "NETWORK", id = 139, ctx = format!("conn{id}"), remote = %peer, "Closing a connection whose client does not read its replies: they take memory that others wait for");
                "unread replies"
            }
            Self::Stalled => {
                tracing::warn!(target: "NETWORK", id = 140, ctx = format!("conn{id}"), remote = %peer, "Closing a connection that stopped amid a large message: the part that arrived takes memory that others wait for");
                "stopped amid a message"
            }
            Self::NoRoom => {
                tracing::warn!(target: "NETWORK", id = 141, ctx = format!("conn{id}"), remote = %peer, "Closing a connection that sent a large message for which memory had no room in time");
                "no room for a message"
            }
            Self::FailPoint => "a failpoint",
            Self::Foreign(Foreign::Tls) => {
                tracing::warn!(target: "NETWORK", id = 23291, ctx = format!("conn{id}"), remote = %peer, "TLS is disabled (net.tls.mode): closing a connection that began with a ClientHello");
                "TLS"
            }
            Self::Foreign(Foreign::Plain) => {
                tracing::warn!(target: "NETWORK", id = 130, ctx = format!("conn{id}"), remote = %peer, "TLS is required (net.tls.mode): closing a connection that began without it");
                "no TLS"
            }
            Self::Handshake(error) => {
                tracing::warn!(target: "NETWORK", id = 131, ctx = format!("conn{id}"), remote = %peer, error = %error, "TLS handshake failed");
                "no TLS handshake"
            }
            Self::Foreign(Foreign::Http) => "HTTP",
        }
    }
}
