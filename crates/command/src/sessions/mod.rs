//! The logical sessions of clients: which there are, and when each was used last.
//!
//! A session begins with the first command that names it, whoever made its id, and ends when a client says so or nobody
//! has used it for `localLogicalSessionTimeoutMinutes`.
//! Source: MongoDB manual 8.2, "Server Sessions".

pub(crate) mod id;
mod pattern;
mod session;

pub use id::SessionId;
pub(crate) use pattern::SessionPattern;
pub(crate) use session::Session;

use bunko_errors::{ErrorCode, Failure, Result};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Minutes that a session lives without use.
/// Source: MongoDB manual, parameter `localLogicalSessionTimeoutMinutes`.
pub(crate) const SESSION_TIMEOUT_MINUTES: i32 = 30;
/// The same as a span of time.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_mins(SESSION_TIMEOUT_MINUTES as u64);
/// Most sessions at once; about 200 bytes each.
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
    /// A table without sessions; times of use count from now on.
    pub(crate) fn new(began: Instant) -> Self {
        Self { shards: Default::default(), count: AtomicUsize::new(0), began }
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
        let session = Arc::new(Session::new(id, self.since_beginning_ms(now)));
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

    /// Ends a session, if there is one of that id.
    pub(crate) fn end(&self, id: SessionId) {
        let ended = self.shard(id).lock().remove(&id);
        if let Some(session) = ended {
            session.note_end();
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Ends those that nobody has used for that long, but for the spared ones: which these were.
    pub(crate) fn expire(
        &self,
        now: Instant,
        timeout: Duration,
        is_spared: &dyn Fn(SessionId) -> bool,
    ) -> Vec<SessionId> {
        let now_ms = self.since_beginning_ms(now);
        let timeout_ms = timeout.as_millis() as u64;
        let mut over = Vec::new();
        for shard in &self.shards {
            shard.lock().retain(|id, session| {
                let stays = now_ms.saturating_sub(session.last_use_ms()) <= timeout_ms || is_spared(*id);
                if !stays {
                    session.note_end();
                    over.push(*id);
                }
                stays
            });
        }
        self.count.fetch_sub(over.len(), Ordering::Relaxed);
        over
    }

    /// Each session's id and how long after the table began it was used last, by id.
    pub(crate) fn all(&self) -> Vec<(SessionId, Duration)> {
        let of_shard = |shard: &Shard| -> Vec<_> {
            let shard = shard.lock();
            shard.iter().map(|(id, session)| (*id, Duration::from_millis(session.last_use_ms()))).collect()
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

    const NOBODY: &dyn Fn(SessionId) -> bool = &|_| false;

    #[test]
    fn a_session_ends_when_nobody_used_it_for_long() {
        let began = Instant::now();
        let sessions = SessionTable::new(began);
        sessions.touch([1; 16], began).expect("the first");
        let mut at_hand = None;
        sessions.touch_again(&mut at_hand, [2; 16], began).expect("the second");
        let later = began + Duration::from_secs(100);
        sessions.touch_again(&mut at_hand, [2; 16], later).expect("used again");
        assert_eq!(sessions.expire(later, Duration::from_secs(99), NOBODY), [[1; 16]]);
        assert_eq!(sessions.all(), [([2; 16], Duration::from_secs(100))]);
        assert_eq!(sessions.count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_is_in_use_is_spared() {
        let began = Instant::now();
        let sessions = SessionTable::new(began);
        sessions.touch([1; 16], began).expect("the first");
        let later = began + Duration::from_secs(100);
        assert!(sessions.expire(later, Duration::from_secs(1), &|id| id == [1; 16]).is_empty());
    }

    #[test]
    fn a_session_that_was_ended_begins_anew() {
        let began = Instant::now();
        let sessions = SessionTable::new(began);
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
