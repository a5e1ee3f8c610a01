//! A cursor belongs to the user who opened it.

use super::Asker;
use crate::access_control::LoggedIn;
use crate::invocation::Invocation;
use crate::service::Service;
use bunko_access::{Action, Privilege};
use bunko_bson::{ArrayRef, ValueRef};
use bunko_request::Request;
use bunko_session::Owner;
use std::net::IpAddr;
use std::sync::Arc;

/// The owner of a cursor that a command opens; `None` if privileges are not checked or no user is logged in.
pub(crate) fn owner_of(invocation: &Invocation<'_>) -> Option<Owner> {
    let user = invocation.connection.user.as_ref().filter(|_| invocation.service.access.is_enforced())?;
    Some(user.as_owner(invocation.connection.peer.ip()))
}

impl LoggedIn {
    /// The user, connected from that address, as owner of what they begin now.
    pub(crate) fn as_owner(&self, source: Option<IpAddr>) -> Owner {
        let (name, privileges) = (self.name.clone(), Arc::clone(&self.privileges));
        Owner { name, digest: self.digest, id: self.id.clone(), privileges, source }
    }

    /// Whether the owner is this user, and not another user of the same name.
    pub(crate) fn is_owner(&self, owner: &Owner) -> bool {
        self.name == owner.name && self.id == owner.id
    }

    /// Whether the owner is this user, who still has all their privileges from then and may still connect from that
    /// address.
    pub(crate) fn is_still_owner(&self, owner: &Owner) -> bool {
        let keeps = |before: &Privilege| {
            let now = self.privileges.iter().find(|now| now.resource == before.resource);
            now.is_some_and(|now| before.actions.without(now.actions).is_empty())
        };
        let is_as_before = || Arc::ptr_eq(&owner.privileges, &self.privileges) || owner.privileges.iter().all(keeps);
        self.is_owner(owner) && self.may_come_from(owner.source) && is_as_before()
    }
}

/// `getMore`: the cursor is the user's own, and none of their privileges was revoked since.
pub(crate) fn get_more(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let Some(user) = asker.logged_in() else { return false };
    match request.argument() {
        ValueRef::Int64(id) => !asker.service.cursors.is_anothers(id, |owner| user.is_still_owner(owner)),
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
