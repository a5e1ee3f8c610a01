//! The logical sessions of clients: which there are, and when each was used last.
//!
//! A session begins with the first command that names it, whoever made its id, and ends when a client says so or nobody
//! has used it for `localLogicalSessionTimeoutMinutes`.
//! Source: MongoDB manual 8.2, "Server Sessions".

mod check_out;
pub(crate) mod id;
mod pattern;
mod session;
mod standing;

pub(crate) use check_out::{Asked, CheckedOut};
pub use id::SessionId;
use id::{Digest, UID, digest_of};
pub(crate) use pattern::SessionPattern;
pub(crate) use session::Session;

use bunko_access::Name;
use bunko_catalog::{WriteHistories, WriteHistory};
use bunko_errors::{ErrorCode, Failure, Result};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use session::Kept;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Minutes that a session lives without use.
/// Source: MongoDB manual, parameter `localLogicalSessionTimeoutMinutes`.
pub(crate) const SESSION_TIMEOUT_MINUTES: i32 = 30;
/// The same as a span of time.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_mins(SESSION_TIMEOUT_MINUTES as u64);
/// How long what a session has written under its last number is kept once a client has ended it.
const ENDED_TIMEOUT: Duration = Duration::from_mins(1);
/// Sessions that end at once at most, so that whoever looks after them is not held up.
const EXPIRED_MAX: usize = 20_000;
/// Most sessions at once; about 300 bytes each.
/// Source: MongoDB manual, parameter `maxSessions`.
pub(crate) const SESSIONS_MAX: usize = 1_000_000;
/// Parts of the table that are locked one by one.
const SHARDS: usize = 16;

type Shard = Mutex<HashMap<SessionId, Arc<Session>, RandomState>>;

/// All sessions by id.
pub struct SessionTable {
    shards: [Shard; SHARDS],
    count: AtomicUsize,
    /// Times of use are told from here, in milliseconds.
    began: Instant,
}

impl SessionTable {
    /// A table of the sessions that wrote before the last stop; times of use count from now on.
    pub(crate) fn new(began: Instant, histories: WriteHistories) -> Self {
        let table = Self { shards: Default::default(), count: AtomicUsize::new(histories.len()), began };
        for (id, history) in histories {
            let session = Session::new(id, 0, history);
            // Nobody has named it since: it is known for its writes alone.
            session.note_ended();
            table.shard(id).lock().insert(id, Arc::new(session));
        }
        table
    }

    /// Notes that a session is used at that time, and begins it where it is new.
    /// # Errors
    /// `TooManyLogicalSessions`.
    pub(crate) fn touch(&self, id: SessionId, now: Instant) -> Result<Arc<Session>> {
        let mut shard = self.shard(id).lock();
        if let Some(session) = shard.get(&id) {
            session.note_use(self.since_beginning_ms(now));
            return Ok(Arc::clone(session));
        }
        if self.count.load(Ordering::Relaxed) >= SESSIONS_MAX {
            let message = format!("Unable to add session: {SESSIONS_MAX} sessions are in use, the most that may be");
            return Err(Failure::new(ErrorCode::TOO_MANY_LOGICAL_SESSIONS, message));
        }
        let session = Arc::new(Session::new(id, self.since_beginning_ms(now), WriteHistory::default()));
        shard.insert(id, Arc::clone(&session));
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }

    /// The same by somebody who may have the session at hand already, and has it afterwards. Other connections are not
    /// waited for then.
    /// # Errors
    /// As [`Self::touch`].
    pub(crate) fn touch_again(&self, at_hand: &mut Option<Arc<Session>>, id: SessionId, now: Instant) -> Result<()> {
        match at_hand {
            Some(session) if session.id == id && !session.is_over() => session.note_use(self.since_beginning_ms(now)),
            _ => *at_hand = Some(self.touch(id, now)?),
        }
        Ok(())
    }

    /// Ends a session, if there is one of that id. What it has written under its last number is remembered for a while.
    pub(crate) fn end(&self, id: SessionId) {
        let mut shard = self.shard(id).lock();
        let Some(session) = shard.get(&id) else { return };
        if session.take_over(Kept::WithHistory).is_some() {
            shard.remove(&id);
            self.count.fetch_sub(1, Ordering::Relaxed);
        } else {
            session.note_ended();
        }
    }

    /// Ends those that nobody has used for that long, but for the spared ones: which these were, and what they left. There
    /// may be more.
    pub(crate) fn expire(
        &self,
        now: Instant,
        timeout: Duration,
        is_spared: &dyn Fn(SessionId) -> bool,
    ) -> Vec<(SessionId, WriteHistory)> {
        let now_ms = self.since_beginning_ms(now);
        let is_expired = |session: &Session| {
            let timeout = if session.is_ended() { timeout.min(ENDED_TIMEOUT) } else { timeout };
            now_ms.saturating_sub(session.last_use_ms()) > timeout.as_millis() as u64
        };
        let mut over = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|id, session| {
                let may_end = over.len() < EXPIRED_MAX && is_expired(session) && !is_spared(*id);
                let taken = may_end.then(|| session.take_over(Kept::AtWork)).flatten();
                let stays = taken.is_none();
                over.extend(taken.map(|history| (*id, history)));
                stays
            });
        }
        self.count.fetch_sub(over.len(), Ordering::Relaxed);
        over
    }

    /// Whose session it is, where users are asked for.
    pub(crate) fn owner(&self, id: SessionId) -> Option<Name> {
        self.shard(id).lock().get(&id).and_then(|session| session.owner().cloned())
    }

    /// A digest of whose session it is.
    pub(crate) fn digest(&self, id: SessionId) -> Digest {
        self.shard(id).lock().get(&id).map_or(UID, |session| digest_of(session.owner()))
    }

    /// Each session's id and how long after the table began it was used last, by id.
    pub(crate) fn all(&self) -> Vec<(SessionId, Duration)> {
        let of_shard = |shard: &Shard| -> Vec<_> {
            let shard = shard.lock();
            let known = shard.iter().filter(|(_, session)| !session.is_ended());
            known.map(|(id, session)| (*id, Duration::from_millis(session.last_use_ms()))).collect()
        };
        let mut all: Vec<_> = self.shards.iter().flat_map(of_shard).collect();
        all.sort_unstable();
        all
    }

    fn shard(&self, id: SessionId) -> &Shard {
        // A client that chooses ids for one shard has its own sessions wait for each other, and no longer search.
        &self.shards[usize::from(id[15]) % SHARDS]
    }

    fn since_beginning_ms(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_millis() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_operation::OperationContext;

    const NOBODY: &dyn Fn(SessionId) -> bool = &|_| false;

    #[test]
    fn a_session_ends_when_nobody_used_it_for_long() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        sessions.touch([1; 16], began).expect("the first");
        let mut at_hand = None;
        sessions.touch_again(&mut at_hand, [2; 16], began).expect("the second");
        let later = began + Duration::from_secs(100);
        sessions.touch_again(&mut at_hand, [2; 16], later).expect("used again");
        let over = sessions.expire(later, Duration::from_secs(99), NOBODY);
        assert_eq!(over.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [[1; 16]]);
        assert_eq!(sessions.all(), [([2; 16], Duration::from_secs(100))]);
        assert_eq!(sessions.count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_is_in_use_is_spared() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        sessions.touch([1; 16], began).expect("the first");
        let later = began + Duration::from_secs(100);
        assert!(sessions.expire(later, Duration::from_secs(1), &|id| id == [1; 16]).is_empty());
    }

    #[test]
    fn a_session_at_work_does_not_end() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        let operation = OperationContext::unlimited();
        let session = sessions.touch([1; 16], began).expect("the first");
        let write = |number| Asked { number, part: None };
        let mut at_work = session.take(write(5), &*operation).expect("in time").expect("not over");
        let later = began + Duration::from_secs(100);
        assert!(session.is_at_work());
        assert!(sessions.expire(later, Duration::from_secs(1), NOBODY).is_empty());
        at_work.history.turn_to(5);
        assert!(session.give_back(at_work).is_none());
        let too_old = session.take(write(4), &*operation).err().expect("5 has begun");
        assert_eq!(too_old.code(), ErrorCode::TRANSACTION_TOO_OLD);
        sessions.end([1; 16]);
        assert!(sessions.all().is_empty());
        assert_eq!(sessions.expire(later, Duration::from_secs(1000), NOBODY).len(), 1, "an ended one ends sooner");
        assert!(session.take(write(6), &*operation).expect("in time").is_none());
    }

    #[test]
    fn a_session_that_was_ended_begins_anew() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        let mut at_hand = None;
        sessions.touch_again(&mut at_hand, [2; 16], began).expect("the first");
        sessions.end([2; 16]);
        sessions.end([2; 16]);
        assert_eq!(sessions.count.load(Ordering::Relaxed), 0);
        let later = began + Duration::from_secs(5);
        sessions.touch_again(&mut at_hand, [2; 16], later).expect("the next");
        assert_eq!(sessions.all(), [([2; 16], Duration::from_secs(5))]);
    }
}
