//! What is revoked ends what runs by it: operations and transactions of users who are gone or may do less, and cursors of
//! those who are gone.
//!
//! A connection reads its user's rights anew with its next command. This is for what has begun before: a scan of an hour,
//! a stream that waits for changes.

use super::logged_in::LoggedIn;
use crate::service::Service;
use bunko_access::Name;
use std::collections::{HashMap, HashSet};

/// Ends what users have begun who could do something then that they may not do now, or may not come any more from where
/// they are; but not the operation that asks, which may have brought that about. It does not matter whether what was revoked is what the operation needs: that is not
/// known of one that runs. Who only got rights, or the same by other roles on the same resources, goes on.
pub(crate) fn end_revoked(service: &Service, asking: u32) {
    if !service.access.is_enforced() {
        return;
    }
    let mut users: HashMap<Name, Option<LoggedIn>> = HashMap::new();
    let mut revoked = HashSet::new();
    for (opid, owner) in service.operations.running_for(asking) {
        if !now(service, &mut users, owner.name()).is_some_and(|now| owner.is_still(now)) {
            service.operations.kill(opid);
            revoked.insert(owner.name().clone());
        }
    }
    // The next getMore of somebody who is still there hears that they may not read it any more.
    for (id, owner) in service.cursors.owners() {
        if !now(service, &mut users, owner.name()).is_some_and(|now| owner.is_of(now)) {
            service.cursors.kill(id, None);
            revoked.insert(owner.name().clone());
        }
    }
    service.abort_transactions(|entry| {
        // What it has written by a right that is gone must not be committed.
        let Some(owner) = &entry.owner else { return false };
        let is_revoked = !now(service, &mut users, owner.name()).is_some_and(|now| owner.is_still(now));
        if is_revoked {
            revoked.insert(owner.name().clone());
        }
        is_revoked
    });
    if !revoked.is_empty() {
        let names: Vec<_> = revoked.iter().map(ToString::to_string).collect();
        tracing::info!(target: "ACCESS", users = names.join(", "), "Operations, transactions and cursors ended: rights of their users were revoked, or those to come from where they are");
    }
}

/// What a user may do now; who cannot be read is nobody.
fn now<'u>(service: &Service, users: &'u mut HashMap<Name, Option<LoggedIn>>, name: &Name) -> Option<&'u LoggedIn> {
    let read = || LoggedIn::of(service, name).ok().flatten();
    users.entry(name.clone()).or_insert_with(read).as_ref()
}
