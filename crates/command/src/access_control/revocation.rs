//! Ends running work after a revocation: operations and transactions of users who were dropped or lost rights, and
//! cursors of users who were dropped.
//!
//! A connection reads its user's rights again before its next command. This module is for work that began before: a
//! scan of an hour, a change stream that waits.

use crate::service::Service;
use bunko_access::Name;
use bunko_authority::LoggedIn;
use std::collections::{HashMap, HashSet};

/// Ends the work of users who lost a right that they had when it began, or who may no longer log in from their address.
/// The operation that asks is spared: it may be the revocation itself.
///
/// Any lost right ends an operation, because the server does not know which rights a running operation needs. A user
/// who gained rights, or has equal rights on each resource by other roles, is not affected.
pub(crate) fn end_revoked(service: &Service, asking: u32) {
    if !service.authority.access.is_enforced() {
        return;
    }
    let mut users: HashMap<Name, Option<LoggedIn>> = HashMap::new();
    let mut revoked = HashSet::new();
    for (opid, owner) in service.operations.running_for(asking) {
        if !now(service, &mut users, &owner.name).is_some_and(|now| now.is_still_owner(&owner)) {
            service.operations.kill(opid);
            revoked.insert(owner.name.clone());
        }
    }
    // If the user still exists, the next `getMore` checks the rights and refuses.
    for (id, owner) in service.cursors.owners() {
        if !now(service, &mut users, &owner.name).is_some_and(|now| now.is_owner(&owner)) {
            service.cursors.kill(id, None);
            revoked.insert(owner.name.clone());
        }
    }
    service.abort_transactions(|entry| {
        // A transaction must not commit writes that the user has lost the right to.
        let Some(owner) = &entry.owner else { return false };
        let is_revoked = !now(service, &mut users, &owner.name).is_some_and(|now| now.is_still_owner(owner));
        if is_revoked {
            revoked.insert(owner.name.clone());
        }
        is_revoked
    });
    if !revoked.is_empty() {
        let names: Vec<_> = revoked.iter().map(ToString::to_string).collect();
        tracing::info!(target: "ACCESS", id = 143, users = names.join(", "), "Ended operations, transactions and cursors of users who lost a privilege, or may no longer come from their address");
    }
}

/// The current rights of a user. A user who cannot be read counts as dropped.
fn now<'u>(service: &Service, users: &'u mut HashMap<Name, Option<LoggedIn>>, name: &Name) -> Option<&'u LoggedIn> {
    let read = || LoggedIn::of(&service.authority, name).ok().flatten();
    users.entry(name.clone()).or_insert_with(read).as_ref()
}
