//! A cursor belongs to the user who opened it.

use super::Asker;
use crate::access_control::LoggedIn;
use crate::invocation::Invocation;
use crate::service::Service;
use crate::sessions::id::Digest;
use bunko_access::{Action, Name, Privilege};
use bunko_bson::{ArrayRef, ValueRef};
use bunko_request::Request;
use std::net::IpAddr;
use std::sync::Arc;

/// The user who opened a cursor or runs an operation, with their privileges at that time.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    name: Name,
    /// Identifies the user as owner of sessions.
    digest: Digest,
    /// The user's id. A later user of that name has a different one.
    id: Option<Arc<[u8]>>,
    privileges: Arc<[Privilege]>,
    /// The client's address; `None` for a Unix domain socket.
    source: Option<IpAddr>,
}

impl Owner {
    /// The owner of a cursor that a command opens; `None` if privileges are not checked or no user is logged in.
    pub(crate) fn of(invocation: &Invocation<'_>) -> Option<Self> {
        let user = invocation.connection.user.as_ref().filter(|_| invocation.service.access.is_enforced())?;
        Some(Self::of_user(user, invocation.connection.peer.ip()))
    }

    /// A logged-in user who connects from that address.
    pub(crate) fn of_user(user: &LoggedIn, source: Option<IpAddr>) -> Self {
        let (name, privileges) = (user.name.clone(), Arc::clone(&user.privileges));
        Self { name, digest: user.digest, id: user.id.clone(), privileges, source }
    }

    /// Sets the user's present privileges.
    pub(crate) fn renew(&mut self, now: &Self) {
        self.privileges = Arc::clone(&now.privileges);
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// A short digest that tells users apart.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether this is that user, and not another user of the same name.
    pub(crate) fn is_of(&self, user: &LoggedIn) -> bool {
        self.name == user.name && self.id == user.id
    }

    /// Whether this is that user, who still has all their privileges from then and may still connect from that address.
    pub(crate) fn is_still(&self, user: &LoggedIn) -> bool {
        let keeps = |before: &Privilege| {
            let now = user.privileges.iter().find(|now| now.resource == before.resource);
            now.is_some_and(|now| before.actions.without(now.actions).is_empty())
        };
        let is_as_before = || Arc::ptr_eq(&self.privileges, &user.privileges) || self.privileges.iter().all(keeps);
        self.is_of(user) && user.may_come_from(self.source) && is_as_before()
    }
}

/// `getMore`: the cursor is the user's own, and none of their privileges was revoked since.
pub(crate) fn get_more(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let Some(user) = asker.logged_in() else { return false };
    match request.argument() {
        ValueRef::Int64(id) => !asker.service.cursors.is_anothers(id, |owner| owner.is_still(user)),
        _ => true,
    }
}

/// `killCursors`: all cursors are the user's own, or the user may kill any cursor on the collections that they read.
/// The collection in the command does not count: nothing checks that the cursors read it.
pub(crate) fn kill(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let Some(user) = asker.user() else { return false };
    if asker.on_cluster(Action::KillAnyCursor) {
        return true;
    }
    let may_close = |id| {
        asker.service.cursors.owner_and_namespace(id).is_none_or(|(owner, read)| {
            owner.is_some_and(|owner| owner.name == *user)
                || asker.on_collection(read.database(), read.collection(), Action::KillAnyCursor)
        })
    };
    let arrays = request.body.iter().filter_map(|field| field.value.as_array());
    arrays.flat_map(ArrayRef::iter).all(|id| match id {
        ValueRef::Int64(id) => may_close(id),
        _ => true,
    })
}

/// Whether a client may close a cursor by the opcode OP_KILL_CURSORS, which has no reply.
pub(crate) fn may_close(service: &Service, asker: Option<&Asker<'_>>, id: i64) -> bool {
    let user = asker.and_then(Asker::user);
    user.is_some_and(|user| !service.cursors.is_anothers(id, |owner| owner.name == *user))
}
