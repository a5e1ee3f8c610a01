//! The localhost exception: while there is no user, a client on this machine may, without a login, create one, grant
//! roles, and set up the replica set.
//! Source: MongoDB manual 8.2, "Localhost Exception in Self-Managed Deployments".

use crate::access_control::{DATABASE, EXTERNAL_DATABASE, USERS};
use crate::authority::Authority;
use crate::client::Client;
use bunko_access::{Action, ActionSet, Authorization, Privilege, Resource};
use bunko_catalog::Namespace;
use bunko_request::Peer;
use std::sync::LazyLock;

/// The privileges of the exception.
static ALLOWED: LazyLock<Authorization> = LazyLock::new(|| {
    let users = ActionSet::of(&[Action::CreateUser, Action::GrantRole]);
    let set = ActionSet::of(&[Action::ReplSetConfigure, Action::ReplSetGetStatus]);
    let external = Resource::Database(EXTERNAL_DATABASE.into());
    Authorization::new(&[
        Privilege { resource: Resource::Database(DATABASE.into()), actions: users },
        Privilege { resource: external, actions: ActionSet::of(&[Action::CreateUser]) },
        Privilege { resource: Resource::Cluster, actions: set },
    ])
});

/// The privileges that the exception gives a client; `None` if the client is remote or the exception has ended.
pub(super) fn of(authority: &Authority, client: &Client) -> Option<&'static Authorization> {
    let is_local = match client.peer {
        Peer::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Peer::Unix => true,
    };
    (is_local && is_open(authority)).then(|| &*ALLOWED)
}

/// Whether no user exists. Once the server has seen a user, the exception stays closed until the next start, even if
/// the user is dropped.
pub(super) fn is_open(authority: &Authority) -> bool {
    let access = &authority.access;
    if access.is_bypass_closed() || access.has_had_users() {
        return false;
    }
    let users = Namespace::new(DATABASE, USERS).ok().and_then(|namespace| authority.catalog.collection(&namespace));
    let is_open = users.is_none_or(|users| users.count() == 0);
    if !is_open {
        access.note_users();
    }
    is_open
}

impl Authority {
    /// Whether a login is required, and no user exists yet who could log in.
    pub fn waits_for_first_user(&self) -> bool {
        self.access.is_enforced() && is_open(self)
    }
}
