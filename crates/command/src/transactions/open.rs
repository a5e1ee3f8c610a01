//! The open transactions, and counts of all.

use crate::class_latency::ClassLatency;
use crate::counters::Latency;
use crate::sessions::{Session, SessionId};
use bunko_authority::Owner;
use bunko_authority::Peer;
use bunko_bson::DocumentBuf;
use bunko_catalog::Transaction;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A transaction in progress, owned by its session.
pub(crate) struct Open {
    pub unit: Arc<Transaction>,
    /// Total run time of its commands.
    pub active: Duration,
}

/// Facts about an open transaction, available while its session works with it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub session: Arc<Session>,
    pub number: i64,
    pub began: Instant,
    /// Read concern of its first command.
    pub read_concern: Option<DocumentBuf>,
    /// The connection that began it, and that connection's client.
    pub connection: i32,
    pub client: Peer,
    /// The user for whom it was begun, with their privileges; `None` on a server that does not check privileges.
    pub owner: Option<Owner>,
}

/// All open transactions of a server.
#[derive(Default)]
pub(crate) struct Transactions {
    open: Mutex<HashMap<SessionId, Entry, RandomState>>,
    started: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
    /// Durations of ended transactions, from their first command to their end.
    latencies: Mutex<ClassLatency>,
}

/// Counts that `serverStatus` shows.
pub(crate) struct Counts {
    pub open: u64,
    /// Open transactions with a command at work.
    pub active: u64,
    pub started: u64,
    pub committed: u64,
    pub aborted: u64,
}

impl Transactions {
    /// Notes that a transaction has begun.
    pub fn note_begin(&self, entry: Entry) {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(entry.session.id, entry);
    }

    /// Gives a user's open transactions the privileges that the user has now.
    pub fn renew_owner(&self, now: &Owner) {
        for entry in self.open.lock().values_mut() {
            if let Some(owner) = entry.owner.as_mut().filter(|owner| owner.name() == now.name()) {
                owner.renew(now);
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
            let micros = entry.began.elapsed().as_micros() as u64;
            self.latencies.lock().note(Latency { micros, operations: 1 });
        }
    }

    /// Durations of ended transactions.
    pub fn latencies(&self) -> ClassLatency {
        self.latencies.lock().clone()
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
