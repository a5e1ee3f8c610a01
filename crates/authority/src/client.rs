//! The client of a connection.

use crate::authority::Authority;
use crate::logged_in::LoggedIn;
use crate::login::Login;
use bunko_access::{Owner, random_uuid};
use bunko_errors::Result;
use bunko_request::Peer;
use std::net::SocketAddr;
use std::sync::OnceLock;

/// The server's end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEnd {
    /// An address.
    Tcp(SocketAddr),
    /// The path of a Unix domain socket.
    Unix(String),
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

    /// The user who is logged in; `None` before a login and after a logout.
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
        self.user.as_ref().map(|user| user.as_owner(self.peer.ip()))
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
        let is_still = |now: &&LoggedIn| before.is_some_and(|before| now.is_still_owner(&before));
        Ok(self.user.as_ref().filter(is_still).and_then(|_| self.owner()))
    }

    /// Another connection of the client, as the same user with the rights that the user has now. `None` if the user was
    /// dropped, or may no longer log in from that address.
    /// # Errors
    /// If the user cannot be read.
    pub fn another(&self, authority: &Authority) -> Result<Option<Self>> {
        let mut another = Self { local: self.local.clone(), ..Self::new(self.id, self.peer) };
        if let Some(user) = &self.user {
            let now = LoggedIn::of(authority, &user.name)?
                .filter(|now| now.id == user.id && now.may_come_from(self.peer.ip()));
            if now.is_none() {
                return Ok(None);
            }
            another.user = now;
        }
        Ok(Some(another))
    }

    /// Logs the user out.
    pub fn log_out(&mut self) {
        self.user = None;
    }
}
