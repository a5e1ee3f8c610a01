//! The logical sessions of clients, and when each was last used.
//!
//! A session begins with the first command that names it, whether the server or a client made its id. It ends when a
//! client ends it or when it was unused for `localLogicalSessionTimeoutMinutes`.
//!
//! A connection keeps the session that it used last, so most commands only note the time (`touch_again`).
//! `close_idle_cursors`, called every few seconds, ends expired sessions and closes their cursors. A command that gives
//! its session back leaves the log position of its last write in the session (`LastWrite`); `config.transactions` finds
//! the time by that position.
//! Source: MongoDB manual 8.2, "Server Sessions".

mod asked;
mod check_out;
pub mod id;
mod last_write;
mod pattern;
mod session;
mod standing;

pub use asked::NumberedCommand;
pub use check_out::CheckedOut;
use id::Digest;
pub use id::{NamedSession, SessionId};
pub use last_write::{LastWrite, WriteKind};
pub use pattern::SessionPattern;
pub use session::{Kept, Session};

use bunko_catalog::{NOBODY, WriteHistories, WriteHistory};
use bunko_errors::{ErrorCode, Failure, Result};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Minutes that an unused session lives.
/// Source: MongoDB manual, parameter `localLogicalSessionTimeoutMinutes`.
pub const SESSION_TIMEOUT_MINUTES: i32 = 30;
/// [`SESSION_TIMEOUT_MINUTES`] as a duration.
pub const SESSION_TIMEOUT: Duration = Duration::from_mins(SESSION_TIMEOUT_MINUTES as u64);
/// How long the write history of a session is kept after a client ended the session.
const ENDED_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum number of sessions that one call of `expire` ends, so that its caller is not held up.
const EXPIRED_MAX: usize = 20_000;
/// Maximum number of sessions at once. Each takes about 300 bytes, and 120 more for its last write in the store. A user
/// may have no more sessions than are still free, so that a client cannot keep other users out by taking all it can
/// get: drivers name a session in each command.
/// Source: MongoDB manual, parameter `maxSessions`.
pub const SESSIONS_MAX: usize = 1_000_000;
/// Parts of the table, each with its own lock.
pub const SHARDS: usize = 16;

type Shard = Mutex<HashMap<SessionId, Arc<Session>, RandomState>>;

/// All sessions by id.
pub struct SessionTable {
    shards: [Shard; SHARDS],
    count: AtomicUsize,
    /// Maximum number of sessions at once.
    count_max: usize,
    /// Number of sessions of each user. A thread locks this while it holds the lock of a shard.
    of_users: Mutex<HashMap<Digest, usize, RandomState>>,
    /// Times of use are milliseconds since this instant.
    began: Instant,
}

impl SessionTable {
    /// A table of the sessions that wrote before the last stop. Times of use count from now on.
    pub fn new(began: Instant, histories: WriteHistories) -> Self {
        let table = Self {
            shards: Default::default(),
            count: AtomicUsize::new(0),
            count_max: SESSIONS_MAX,
            of_users: Mutex::default(),
            began,
        };
        for (id, history) in histories {
            let session = Session::new(id, 0, history);
            // No client has named the session since the start: it is kept only for its write history.
            session.note_ended();
            table.note_new(id);
            table.shard(id).lock().insert(id, Arc::new(session));
        }
        table
    }

    /// Takes over the write histories of another primary. Sessions without one have none any more.
    pub fn adopt(&self, mut histories: WriteHistories) {
        for shard in &self.shards {
            shard.lock().iter().for_each(|(id, session)| session.adopt(histories.remove(id).unwrap_or_default()));
        }
        for (id, history) in histories {
            let session = Session::new(id, 0, history);
            session.note_ended();
            self.note_new(id);
            self.shard(id).lock().insert(id, Arc::new(session));
        }
    }

    /// Notes that a session is used at `now`, and begins it if it is new.
    /// # Errors
    /// `TooManyLogicalSessions`.
    pub fn touch(&self, id: SessionId, now: Instant) -> Result<Arc<Session>> {
        let mut shard = self.shard(id).lock();
        if let Some(session) = shard.get(&id) {
            session.note_use(self.since_beginning_ms(now));
            return Ok(Arc::clone(session));
        }
        self.check_room(id)?;
        let session = Arc::new(Session::new(id, self.since_beginning_ms(now), WriteHistory::default()));
        shard.insert(id, Arc::clone(&session));
        self.note_new(id);
        Ok(session)
    }

    /// Checks whether the session's user may have one more.
    fn check_room(&self, id: SessionId) -> Result<()> {
        let free = self.count_max.saturating_sub(self.count.load(Ordering::Relaxed));
        let message = if free == 0 {
            format!("Unable to add session: {} sessions are in use, the most that may be", self.count_max)
        } else if id.user == NOBODY {
            // Without users, there are no other users to keep room for.
            return Ok(());
        } else {
            let own = self.of_users.lock().get(&id.user).copied().unwrap_or(0);
            if own < free {
                return Ok(());
            }
            format!("Unable to add session: {own} sessions of this user are in use, and the {free} left are for others")
        };
        Err(Failure::new(ErrorCode::TOO_MANY_LOGICAL_SESSIONS, message))
    }

    fn note_new(&self, id: SessionId) {
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.of_users.lock().entry(id.user).or_default() += 1;
    }

    fn note_over(&self, id: SessionId) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        if let Entry::Occupied(mut own) = self.of_users.lock().entry(id.user) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }

    /// As [`Self::touch`], for a caller that keeps the session in `at_hand`. If it is there already, the table is not
    /// locked, so the caller does not wait for other connections.
    /// # Errors
    /// As [`Self::touch`].
    pub fn touch_again(&self, at_hand: &mut Option<Arc<Session>>, id: SessionId, now: Instant) -> Result<()> {
        match at_hand {
            Some(session) if session.id == id && !session.is_over() => session.note_use(self.since_beginning_ms(now)),
            _ => *at_hand = Some(self.touch(id, now)?),
        }
        Ok(())
    }

    /// Ends a session, if there is one with that id. Its write history is kept for a while.
    pub fn end(&self, id: SessionId) {
        let mut shard = self.shard(id).lock();
        let Some(session) = shard.get(&id) else { return };
        if session.take_over(Kept::WithHistory).is_some() {
            shard.remove(&id);
            self.note_over(id);
        } else {
            session.note_ended();
        }
    }

    /// Ends sessions that were unused for `timeout`, except `kept` and spared ones. Returns their ids and write
    /// histories. At most `EXPIRED_MAX` end at once, so more may be left.
    pub fn expire(
        &self,
        now: Instant,
        timeout: Duration,
        kept: Kept,
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
                let taken = may_end.then(|| session.take_over(kept)).flatten();
                let stays = taken.is_none();
                over.extend(taken.map(|history| (*id, history)));
                stays
            });
        }
        for (id, _) in &over {
            self.note_over(*id);
        }
        over
    }

    /// The id of each session that is not ended, with the time of its last use since the table began, sorted by id.
    pub fn all(&self) -> Vec<(SessionId, Duration)> {
        let of_shard = |shard: &Shard| -> Vec<_> {
            let shard = shard.lock();
            let known = shard.iter().filter(|(_, session)| !session.is_ended());
            known.map(|(id, session)| (*id, Duration::from_millis(session.last_use_ms()))).collect()
        };
        let mut all: Vec<_> = self.shards.iter().flat_map(of_shard).collect();
        all.sort_unstable();
        all
    }

    /// The sessions in the shard with this number, below [`SHARDS`], ended ones included, in no order.
    pub fn in_shard(&self, number: usize) -> Vec<Arc<Session>> {
        self.shards[number].lock().values().cloned().collect()
    }

    fn shard(&self, id: SessionId) -> &Shard {
        // A client could choose its ids so that all are in one shard. Then only its own sessions contend for the lock,
        // and lookups take no longer.
        &self.shards[usize::from(id.id[15]) % SHARDS]
    }

    fn since_beginning_ms(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_millis() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_operation::OperationContext;

    const NONE: &dyn Fn(SessionId) -> bool = &|_| false;
    const ONE: SessionId = SessionId { id: [1; 16], user: NOBODY };
    const TWO: SessionId = SessionId { id: [2; 16], user: NOBODY };

    #[test]
    fn a_session_ends_when_it_was_unused_for_long() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        sessions.touch(ONE, began).expect("the first");
        let mut at_hand = None;
        sessions.touch_again(&mut at_hand, TWO, began).expect("the second");
        let later = began + Duration::from_secs(100);
        sessions.touch_again(&mut at_hand, TWO, later).expect("used again");
        let over = sessions.expire(later, Duration::from_secs(99), Kept::AtWork, NONE);
        assert_eq!(over.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [ONE]);
        assert_eq!(sessions.all(), [(TWO, Duration::from_secs(100))]);
        assert_eq!(sessions.count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn no_user_takes_the_sessions_of_all() {
        let began = Instant::now();
        let sessions = SessionTable { count_max: 1000, ..SessionTable::new(began, WriteHistories::default()) };
        let of = |user: u8, number: u16| {
            let mut id = [0; 16];
            id[..2].copy_from_slice(&number.to_le_bytes());
            sessions.touch(SessionId { id, user: [user; 32] }, began)
        };
        let taken = |user| (0..1000).take_while(|number| of(user, *number).is_ok()).count();
        assert_eq!([taken(1), taken(2), taken(3)], [500, 250, 125]);
        let refused = of(1, 1000).expect_err("too many");
        assert_eq!(refused.code(), ErrorCode::TOO_MANY_LOGICAL_SESSIONS);
        assert!(refused.message().contains("500 sessions of this user are in use, and the 125 left"), "{refused:?}");
        of(1, 7).expect("one that there is");
        of(4, 1).expect("the first");
        // Expired sessions no longer count.
        assert_eq!(
            sessions.expire(began + Duration::from_secs(9), Duration::from_secs(1), Kept::AtWork, NONE).len(),
            876
        );
        assert_eq!((sessions.count.load(Ordering::Relaxed), sessions.of_users.lock().len()), (0, 0));
        assert_eq!(taken(5), 500);
        let nobody = (0..1000_u16).filter(|number| {
            let mut id = [1; 16];
            id[..2].copy_from_slice(&number.to_le_bytes());
            sessions.touch(SessionId { id, user: NOBODY }, began).is_ok()
        });
        assert_eq!(nobody.count(), 500, "all that there is");
    }

    #[test]
    fn the_shards_have_each_session_once() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        for number in 0..100 {
            sessions.touch(SessionId { id: [number; 16], user: NOBODY }, began).expect("room");
        }
        let mut found: Vec<_> =
            (0..SHARDS).flat_map(|shard| sessions.in_shard(shard)).map(|session| session.id).collect();
        found.sort_unstable();
        assert!(found.iter().map(|id| id.id[0]).eq(0..100), "{found:?}");
    }

    #[test]
    fn the_last_write_stays_while_a_command_works() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        let operation = OperationContext::unlimited();
        let session = sessions.touch(ONE, began).expect("the first");
        let take = |number| {
            session.take(NumberedCommand { number, part: None }, &*operation).expect("in time").expect("not over")
        };
        assert_eq!(session.last_write(), None);
        let at_work = take(5);
        let first = LastWrite::retryable(5, bunko_store::Lsn(64));
        session.give_back(at_work, Some(first));
        // The next write takes the session, and has changed nothing yet.
        let mut at_work = take(6);
        assert_eq!(session.last_write(), Some(first));
        at_work.history.turn_to(6);
        session.give_back(at_work, None);
        assert_eq!(session.last_write(), Some(first));
        assert_eq!(
            sessions.expire(began + Duration::from_secs(9), Duration::from_secs(1), Kept::AtWork, NONE).len(),
            1
        );
        assert_eq!(session.last_write(), None, "it is over");
    }

    #[test]
    fn sessions_in_use_are_spared() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        sessions.touch(ONE, began).expect("the first");
        let later = began + Duration::from_secs(100);
        assert!(sessions.expire(later, Duration::from_secs(1), Kept::AtWork, &|id| id == ONE).is_empty());
    }

    #[test]
    fn a_session_at_work_does_not_end() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        let operation = OperationContext::unlimited();
        let session = sessions.touch(ONE, began).expect("the first");
        let write = |number| NumberedCommand { number, part: None };
        let mut at_work = session.take(write(5), &*operation).expect("in time").expect("not over");
        let later = began + Duration::from_secs(100);
        assert!(session.is_at_work());
        assert!(sessions.expire(later, Duration::from_secs(1), Kept::AtWork, NONE).is_empty());
        at_work.history.turn_to(5);
        assert!(session.give_back(at_work, None).is_none());
        assert!(sessions.expire(later, Duration::from_secs(1), Kept::WithHistory, NONE).is_empty(), "it has a history");
        let too_old = session.take(write(4), &*operation).err().expect("5 has begun");
        assert_eq!(too_old.code(), ErrorCode::TRANSACTION_TOO_OLD);
        sessions.end(ONE);
        assert!(sessions.all().is_empty());
        let ended = sessions.expire(later, Duration::from_secs(1000), Kept::AtWork, NONE);
        assert_eq!(ended.len(), 1, "an ended one ends sooner");
        assert!(session.take(write(6), &*operation).expect("in time").is_none());
    }

    #[test]
    fn a_session_that_was_ended_begins_anew() {
        let began = Instant::now();
        let sessions = SessionTable::new(began, WriteHistories::default());
        let mut at_hand = None;
        sessions.touch_again(&mut at_hand, TWO, began).expect("the first");
        sessions.end(TWO);
        sessions.end(TWO);
        assert_eq!(sessions.count.load(Ordering::Relaxed), 0);
        let later = began + Duration::from_secs(5);
        sessions.touch_again(&mut at_hand, TWO, later).expect("the next");
        assert_eq!(sessions.all(), [(TWO, Duration::from_secs(5))]);
    }
}
