//! The open transactions, and counts of all.

use crate::sessions::{Session, SessionId};
use bunko_access::Owner;
use bunko_bson::DocumentBuf;
use bunko_request::Peer;
use bunko_store::Clock;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Facts about an open transaction, which can be read while a command works with its session.
#[derive(Clone)]
pub struct Entry {
    /// The session that owns the transaction.
    pub session: Arc<Session>,
    /// The transaction's number.
    pub number: i64,
    /// When the transaction's first command began.
    pub began: Instant,
    /// Read concern of the transaction's first command.
    pub read_concern: Option<DocumentBuf>,
    /// The connection that began the transaction.
    pub connection: i32,
    /// The client of that connection.
    pub client: Peer,
    /// The user for whom it was begun, with their privileges; `None` on a server that does not check privileges.
    pub owner: Option<Owner>,
}

/// All open transactions of a server.
pub struct Transactions {
    open: Mutex<HashMap<SessionId, Entry, RandomState>>,
    started: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
    clock: Clock,
    /// Takes the duration of each ended transaction, from its first command to its end.
    note_duration: Box<dyn Fn(Duration) + Send + Sync>,
}

/// Counts that `serverStatus` shows.
pub struct Counts {
    /// Open transactions.
    pub open: u64,
    /// Open transactions with a running command.
    pub active: u64,
    /// Transactions begun since the start.
    pub started: u64,
    /// Transactions committed since the start.
    pub committed: u64,
    /// Transactions aborted since the start.
    pub aborted: u64,
}

impl Transactions {
    /// No transactions. `note_duration` takes the duration of each that ends.
    pub fn new(clock: Clock, note_duration: Box<dyn Fn(Duration) + Send + Sync>) -> Self {
        Self {
            open: Mutex::default(),
            started: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
            clock,
            note_duration,
        }
    }

    /// The clock by which durations of transactions are measured.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Notes that a transaction has begun.
    pub fn note_begin(&self, entry: Entry) {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(entry.session.id, entry);
    }

    /// Gives a user's open transactions the privileges that the user has now.
    pub fn renew_owner(&self, now: &Owner) {
        for entry in self.open.lock().values_mut() {
            if let Some(owner) = entry.owner.as_mut().filter(|owner| owner.name == now.name) {
                owner.privileges = Arc::clone(&now.privileges);
            }
        }
    }

    /// Forgets a transaction whose first command will run again, on another thread or later.
    pub fn note_undone(&self, session: SessionId) {
        self.started.fetch_sub(1, Ordering::Relaxed);
        self.open.lock().remove(&session);
    }

    /// Notes that a transaction has been committed.
    pub fn note_commit(&self, session: SessionId) {
        self.committed.fetch_add(1, Ordering::Relaxed);
        self.end(session);
    }

    /// Notes that a transaction has been aborted.
    pub fn note_abort(&self, session: SessionId) {
        self.aborted.fetch_add(1, Ordering::Relaxed);
        self.end(session);
    }

    fn end(&self, session: SessionId) {
        let ended = self.open.lock().remove(&session);
        if let Some(entry) = ended {
            (self.note_duration)(self.clock.since(entry.began));
        }
    }

    /// The open transactions, sorted by session.
    pub fn all(&self) -> Vec<Entry> {
        let mut all: Vec<_> = self.open.lock().values().cloned().collect();
        all.sort_by_key(|entry| entry.session.id);
        all
    }

    /// The open transaction of a session, if it has one.
    pub fn of(&self, session: SessionId) -> Option<Entry> {
        self.open.lock().get(&session).cloned()
    }

    /// The counts of open and ended transactions.
    pub fn counts(&self) -> Counts {
        let open = self.all();
        Counts {
            active: open.iter().filter(|entry| entry.session.is_at_work()).count() as u64,
            open: open.len() as u64,
            started: self.started.load(Ordering::Relaxed),
            committed: self.committed.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
        }
    }
}
