//! The owner of cursors, operations and transactions.

use crate::logged_in::LoggedIn;
use bunko_access::{Name, Privilege};
use std::net::IpAddr;
use std::sync::Arc;

/// The user who opened a cursor or runs an operation, with their privileges at that time.
#[derive(Clone, Debug)]
pub struct Owner {
    name: Name,
    /// Identifies the user as owner of sessions.
    digest: [u8; 32],
    /// The user's id. A later user of that name has a different one.
    id: Option<Arc<[u8]>>,
    privileges: Arc<[Privilege]>,
    /// The client's address; `None` for a Unix domain socket.
    source: Option<IpAddr>,
}

impl Owner {
    /// A logged-in user who connects from that address.
    pub fn of_user(user: &LoggedIn, source: Option<IpAddr>) -> Self {
        let (name, privileges) = (user.name.clone(), Arc::clone(&user.privileges));
        Self { name, digest: user.digest, id: user.id.clone(), privileges, source }
    }

    /// Sets the user's present privileges.
    pub fn renew(&mut self, now: &Self) {
        self.privileges = Arc::clone(&now.privileges);
    }

    /// The user's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// A short digest that tells users apart.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether this is that user, and not another user of the same name.
    pub fn is_of(&self, user: &LoggedIn) -> bool {
        self.name == user.name && self.id == user.id
    }

    /// Whether this is that user, who still has all their privileges from then and may still connect from that address.
    pub fn is_still(&self, user: &LoggedIn) -> bool {
        let keeps = |before: &Privilege| {
            let now = user.privileges.iter().find(|now| now.resource == before.resource);
            now.is_some_and(|now| before.actions.without(now.actions).is_empty())
        };
        let is_as_before = || Arc::ptr_eq(&self.privileges, &user.privileges) || self.privileges.iter().all(keeps);
        self.is_of(user) && user.may_come_from(self.source) && is_as_before()
    }
}
