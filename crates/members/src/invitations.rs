//! Invitations of servers that are in no set: members that are new, and members that have lost their files.

use crate::core::Core;
use crate::kept::Kept;
use bunko_bson::{DocumentBuf, ObjectId};
use bunko_replica::{MemberId, State};
use std::time::Duration;

/// Time for which a server must have been in no set before a member that is not the primary invites it.
const STRANGER_TIME: Duration = Duration::from_secs(5);

impl Core {
    /// The invitation of another member, which is that server now. One server at most is invited as a new one: another one may be
    /// that member after it has voted, and lost its files.
    pub(crate) fn invitation(&self, member: MemberId, server: ObjectId) -> DocumentBuf {
        let may_offer = self.leads_or_begins();
        let mut kept = self.kept.lock();
        let offered = kept.offered.iter().find(|(id, _)| *id == member).map(|(_, server)| *server);
        let is_new = match offered {
            Some(offered) => offered == server,
            None => may_offer && kept.invited.contains(&member) && self.offer(&mut kept, member, server),
        };
        kept.invitation(member, is_new.then_some(server))
    }

    /// Whether no other member can have led the set, and taken in a new member, since this one added it or initiated the set.
    fn leads_or_begins(&self) -> bool {
        let held = self.held.lock();
        let agreement = &held.agreement;
        agreement.state() == State::Primary || agreement.position().end <= agreement.configuration().base
    }

    /// Keeps that a server is invited as a new member, before it is, so that this goes on after a crash. Returns false if that fails.
    fn offer(&self, kept: &mut Kept, member: MemberId, server: ObjectId) -> bool {
        let mut next = kept.clone();
        next.offered.push((member, server));
        self.keep_invited(kept, next, member)
    }

    /// Replaces the member's file. Returns false if that fails.
    fn keep_invited(&self, kept: &mut Kept, next: Kept, member: MemberId) -> bool {
        match next.write(&self.directory) {
            Ok(()) => {
                *kept = next;
                true
            }
            Err(error) => {
                tracing::error!(target: "REPL", id = 312, ctx = "member", member = member.0, error = %error, "The invitation of another member cannot be saved");
                false
            }
        }
    }

    /// Whether another member that is in no set is invited: this one has initiated the set, and the other one was never in
    /// it; or the other one has lost its files. So as not to take a member for one that has lost its files while the set is
    /// being initiated, only the primary invites such a member at once.
    pub(crate) fn invites(&self, member: MemberId) -> bool {
        if self.kept.lock().invited.contains(&member) {
            return true;
        }
        let now = self.clock.now();
        let mut strangers = self.strangers.lock();
        let known = strangers.iter().find(|(stranger, _)| *stranger == member).map(|(_, since)| *since);
        let since = known.unwrap_or(now);
        if known.is_none() {
            strangers.push((member, now));
        }
        drop(strangers);
        self.is_primary() || now.saturating_duration_since(since) >= STRANGER_TIME
    }

    /// Notes that another member is in the set. If its files are lost afterwards, it is told so when it is invited again: the
    /// set may count on the votes and records that it had.
    pub(crate) fn note_joined(&self, member: MemberId) {
        self.strangers.lock().retain(|(stranger, _)| *stranger != member);
        let mut kept = self.kept.lock();
        if kept.invited.contains(&member) {
            let mut next = kept.clone();
            next.invited.retain(|invited| *invited != member);
            next.offered.retain(|(offered, _)| *offered != member);
            self.keep_invited(&mut kept, next, member);
        }
    }
}
