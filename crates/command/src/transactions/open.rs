//! The transactions that are open, and how many there were.

use crate::authorization::cursors::Owner;
use crate::class_latency::ClassLatency;
use crate::connection::Peer;
use crate::counters::Latency;
use crate::sessions::{Session, SessionId};
use bunko_bson::DocumentBuf;
use bunko_catalog::Transaction;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A transaction in progress, which its session has.
pub(crate) struct Open {
    pub unit: Arc<Transaction>,
    /// How long its commands have run.
    pub active: Duration,
}

/// What is known of an open transaction while its session works with it.
#[derive(Clone)]
pub(crate) struct Entry {
    pub session: Arc<Session>,
    pub number: i64,
    pub began: Instant,
    /// What its first command said.
    pub read_concern: Option<DocumentBuf>,
    /// Who began it: a connection, and its client.
    pub connection: i32,
    pub client: Peer,
    /// For whom it was begun, with what they may do; `None` on a server that asks for no privileges.
    pub owner: Option<Owner>,
}

/// All open transactions of a server.
#[derive(Default)]
pub(crate) struct Transactions {
    open: Mutex<HashMap<SessionId, Entry, RandomState>>,
    started: AtomicU64,
    committed: AtomicU64,
    aborted: AtomicU64,
    /// How long those took that are over, from their first command to their end.
    latencies: Mutex<ClassLatency>,
}

/// What `serverStatus` shows.
pub(crate) struct Counts {
    pub open: u64,
    /// Of these, with a command at work.
    pub active: u64,
    pub started: u64,
    pub committed: u64,
    pub aborted: u64,
}

impl Transactions {
    /// One has begun.
    pub fn note_begin(&self, entry: Entry) {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(entry.session.id, entry);
    }

    /// What somebody may do has grown: what their transactions do from now on may follow from that.
    pub fn renew_owner(&self, now: &Owner) {
        for entry in self.open.lock().values_mut() {
            if let Some(owner) = entry.owner.as_mut().filter(|owner| owner.name() == now.name()) {
                owner.renew(now);
            }
        }
    }

    /// One that had begun has not after all: its first command begins anew elsewhere.
    pub fn note_undone(&self, session: SessionId) {
        self.started.fetch_sub(1, Ordering::Relaxed);
        self.open.lock().remove(&session);
    }

    /// One has been committed.
    pub fn note_commit(&self, session: SessionId) {
        self.committed.fetch_add(1, Ordering::Relaxed);
        self.end(session);
    }

    /// One has been aborted.
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

    /// How long those took that are over.
    pub fn latencies(&self) -> ClassLatency {
        self.latencies.lock().clone()
    }

    /// The open ones, by session.
    pub fn all(&self) -> Vec<Entry> {
        let mut all: Vec<_> = self.open.lock().values().cloned().collect();
        all.sort_by_key(|entry| entry.session.id);
        all
    }

    /// That of a session, if one is open.
    pub fn of(&self, session: SessionId) -> Option<Entry> {
        self.open.lock().get(&session).cloned()
    }

    /// How many there are and were.
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
