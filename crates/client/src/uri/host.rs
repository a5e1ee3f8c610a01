//! One server's address.

use super::UriError;
use super::percent;
use std::fmt;
use std::path::PathBuf;

/// The port of a host without one in the connection string.
pub const DEFAULT_PORT: u16 = 27017;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A TCP port.
    Tcp {
        /// Name or address in lower case; an IPv6 address without its brackets.
        name: String,
        /// 1..=65535.
        port: u16,
    },
    /// A Unix domain socket, for example `/tmp/mongodb-27017.sock`.
    Unix(PathBuf),
}

impl Host {
    /// Reads a host of a connection string, percent-encoded.
    pub(super) fn from_encoded(text: &str) -> Result<Self, UriError> {
        let bad = || UriError::BadHost(text.into());
        let decoded = percent::decode(text).ok_or_else(bad)?;
        if decoded.contains('/') {
            let path = PathBuf::from(decoded);
            return if path.extension().is_some_and(|it| it == "sock") { Ok(Self::Unix(path)) } else { Err(bad()) };
        }
        Self::from_address(&decoded)
    }

    /// Reads `name`, `name:port`, `[address]` or `[address]:port`, as servers list their set's members.
    pub(crate) fn from_address(text: &str) -> Result<Self, UriError> {
        let bad = || UriError::BadHost(text.into());
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, after) = rest.split_once(']').ok_or_else(bad)?;
                match after {
                    "" => (name, None),
                    _ => (name, Some(after.strip_prefix(':').ok_or_else(bad)?)),
                }
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        if name.is_empty() {
            return Err(UriError::MissingHost);
        }
        if name.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(bad());
        }
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => match port.parse() {
                // `parse` would accept "+1".
                Ok(number @ 1..) if port.starts_with(|first: char| first.is_ascii_digit()) => number,
                _ => return Err(UriError::BadPort(port.into())),
            },
        };
        // Servers list their members with the letter case of their configuration.
        Ok(Self::Tcp { name: name.to_ascii_lowercase(), port })
    }

    /// The TCP port, if it has one.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp { port, .. } => Some(*port),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { name, port } if name.contains(':') => write!(f, "[{name}]:{port}"),
            Self::Tcp { name, port } => write!(f, "{name}:{port}"),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
