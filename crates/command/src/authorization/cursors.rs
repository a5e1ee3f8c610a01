//! Cursors belong to the user who opened them.

use super::Asker;
use crate::access_control::LoggedIn;
use crate::dispatch::Request;
use crate::invocation::Invocation;
use crate::service::Service;
use crate::sessions::id::Digest;
use bunko_access::{Action, Name, Privilege};
use bunko_bson::{ArrayRef, ValueRef};
use std::net::IpAddr;
use std::sync::Arc;

/// Who opened a cursor or runs an operation, and what they could do then.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    name: Name,
    /// Whose their sessions are.
    digest: Digest,
    /// Another user of that name has another.
    id: Option<Arc<[u8]>>,
    privileges: Arc<[Privilege]>,
    /// Where they came from; a Unix domain socket has no address.
    source: Option<IpAddr>,
}

impl Owner {
    /// Whose cursor it is that a command opens; `None` on a server that asks for no privileges.
    pub(crate) fn of(invocation: &Invocation<'_>) -> Option<Self> {
        let user = invocation.connection.user.as_ref().filter(|_| invocation.service.access.is_enforced())?;
        Some(Self::of_user(user, invocation.connection.peer.ip()))
    }

    /// Who is logged in, from that address.
    pub(crate) fn of_user(user: &LoggedIn, source: Option<IpAddr>) -> Self {
        let (name, privileges) = (user.name.clone(), Arc::clone(&user.privileges));
        Self { name, digest: user.digest, id: user.id.clone(), privileges, source }
    }

    /// The same with what they may do now.
    pub(crate) fn renew(&mut self, now: &Self) {
        self.privileges = Arc::clone(&now.privileges);
    }

    pub(crate) fn name(&self) -> &Name {
        &self.name
    }

    /// By which users are told apart, in few bytes.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether that is the user, and not another one of the same name.
    pub(crate) fn is_of(&self, user: &LoggedIn) -> bool {
        self.name == user.name && self.id == user.id
    }

    /// Whether that is the user, who still may do all that they could then, and may come from where they came from.
    pub(crate) fn is_still(&self, user: &LoggedIn) -> bool {
        let keeps = |before: &Privilege| {
            let now = user.privileges.iter().find(|now| now.resource == before.resource);
            now.is_some_and(|now| before.actions.without(now.actions).is_empty())
        };
        let is_as_before = || Arc::ptr_eq(&self.privileges, &user.privileges) || self.privileges.iter().all(keeps);
        self.is_of(user) && user.may_come_from(self.source) && is_as_before()
    }
}

/// `getMore`: the cursor is one's own, and nothing has been revoked since it was opened.
pub(crate) fn get_more(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let Some(user) = asker.logged_in() else { return false };
    match request.argument() {
        ValueRef::Int64(id) => !asker.service.cursors.is_anothers(id, |owner| owner.is_still(user)),
        _ => true,
    }
}

/// `killCursors`: all of them are one's own, or one may close any of what they read. The collection that the command
/// names tells nothing, as it is not asked whether the cursors read it.
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

/// Whether a client may close a cursor by the opcode of old drivers, which nobody answers.
pub(crate) fn may_close(service: &Service, asker: Option<&Asker<'_>>, id: i64) -> bool {
    let user = asker.and_then(Asker::user);
    user.is_some_and(|user| !service.cursors.is_anothers(id, |owner| owner.name == *user))
}
