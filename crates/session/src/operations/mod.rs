//! The running operations, for `currentOp` and `killOp`.
//!
//! Each connection has one slot. Its first command makes the slot and all others reuse it, so that starting an
//! operation costs one uncontended lock and one small copy. A map with an entry for each running operation would be
//! locked by all connections, twice for each operation.

mod context;
mod interruption;
mod slot;

pub use context::Context;
pub use interruption::{Interruption, at_disconnection, at_shutdown};
pub use slot::{Absence, Beginning, Observed, RunningOperation, Slowing};

use crate::sessions::SessionId;
use bunko_access::Name;
use bunko_access::Owner;
use bunko_bson::DocumentBuf;
use bunko_request::Peer;
use bunko_request::facts::CommandFacts;
use bunko_store::Clock;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use slot::{COMMAND_BYTES_MAX, Details, OperationSlot, keep_command};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

struct Registry {
    clock: Clock,
    slots: Mutex<FxHashMap<u64, Arc<OperationSlot>>>,
    registered: AtomicU64,
    last_opid: AtomicU32,
    are_all_interrupted: Arc<AtomicBool>,
}

/// The running operations.
pub struct Operations {
    registry: Arc<Registry>,
}

/// A connection's entry in the registry, removed when it is dropped.
pub struct Registration {
    registry: Arc<Registry>,
    key: u64,
    slot: Arc<OperationSlot>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.slots.lock().remove(&self.key);
    }
}

impl Operations {
    /// No operations; `clock` tells when each begins and when its time is over.
    pub fn new(clock: Clock) -> Self {
        let registry = Registry {
            clock,
            slots: Mutex::default(),
            registered: AtomicU64::new(0),
            last_opid: AtomicU32::new(0),
            are_all_interrupted: Arc::default(),
        };
        Self { registry: Arc::new(registry) }
    }

    /// Gives a connection its slot.
    pub fn register(&self, connection: i32, client: Peer) -> Registration {
        self.add(connection, Some(client))
    }

    /// A slot for the server's own operations.
    pub fn register_own(&self) -> Registration {
        self.add(0, None)
    }

    fn add(&self, connection: i32, client: Option<Peer>) -> Registration {
        let clock = &self.registry.clock;
        let slot = Arc::new(OperationSlot {
            clock: clock.clone(),
            connection,
            client,
            running: AtomicU32::new(0),
            killed: AtomicU32::new(0),
            moving: AtomicU32::new(0),
            is_client_gone: AtomicBool::new(false),
            are_all_interrupted: Arc::clone(&self.registry.are_all_interrupted),
            stop: Arc::default(),
            details: Mutex::new(Details {
                entry: &CommandFacts::PLAIN,
                database: String::new(),
                command: Vec::new(),
                is_command_cut: false,
                is_writing_for_body: false,
                started: clock.now(),
                session: None,
                metadata: None,
                user: None,
                is_held_back: false,
                is_done: false,
                slowing: Slowing::None,
            }),
        });
        let key = self.registry.registered.fetch_add(1, Ordering::Relaxed);
        self.registry.slots.lock().insert(key, Arc::clone(&slot));
        Registration { registry: Arc::clone(&self.registry), key, slot }
    }

    /// Asks all operations to stop, and those that begin later too: the server is shutting down.
    pub fn interrupt_all(&self) {
        self.registry.are_all_interrupted.store(true, Ordering::SeqCst);
        self.registry.slots.lock().values().for_each(|slot| slot.stop.ring());
    }

    /// Whether all operations have been asked to stop.
    pub fn are_interrupted(&self) -> bool {
        self.registry.are_all_interrupted.load(Ordering::Relaxed)
    }

    /// Interrupts the server's own work once all operations have been asked to stop.
    pub fn interruption_of_own(&self) -> Arc<dyn bunko_operation::Interruption> {
        let Registry { clock, are_all_interrupted, .. } = &*self.registry;
        Arc::new(interruption::EndOfServer::new(are_all_interrupted, clock))
    }

    /// Number of running operations.
    pub fn running(&self) -> usize {
        self.registry.slots.lock().values().filter(|slot| slot.running.load(Ordering::Acquire) != 0).count()
    }

    /// Whether a client's operation that may write runs, and is neither held back nor done. The caller closes the write
    /// lock first. An operation that begins later finds the lock closed, because both sides take the slot's lock.
    pub fn is_one_writing(&self) -> bool {
        let slots: Vec<_> = self.registry.slots.lock().values().cloned().collect();
        slots.iter().any(|slot| {
            let details = slot.details.lock();
            // Index builds that were resumed after a restart do not count: they go on while the lock is closed.
            slot.client.is_some()
                && slot.running.load(Ordering::Acquire) != 0
                && !details.is_held_back
                && !details.is_done
                && (details.is_writing_for_body || details.entry.changes.is_certain())
        })
    }

    /// Asks an operation to stop. As in MongoDB, an id that has ended or never existed is not an error.
    pub fn kill(&self, opid: u32) {
        for slot in self.registry.slots.lock().values() {
            if opid != 0 && slot.running.load(Ordering::Acquire) == opid {
                slot.killed.store(opid, Ordering::Release);
                slot.stop.ring();
            }
        }
    }

    /// The user whose operation this is; `None` if the operation has ended or has no user.
    pub fn user_of(&self, opid: u32) -> Option<Name> {
        let slots = self.registry.slots.lock();
        let slot = slots.values().find(|slot| opid != 0 && slot.running.load(Ordering::Acquire) == opid)?;
        slot.details.lock().user.as_ref().map(|user| user.name.clone())
    }

    /// The running operations that have a user, except `asking`.
    pub fn running_for(&self, asking: u32) -> Vec<(u32, Owner)> {
        let slots: Vec<_> = self.registry.slots.lock().values().cloned().collect();
        let running = |slot: Arc<OperationSlot>| {
            let details = slot.details.lock();
            let opid = slot.running.load(Ordering::Acquire);
            Some((opid, details.user.clone()?)).filter(|_| opid != 0 && opid != asking)
        };
        slots.into_iter().filter_map(running).collect()
    }

    /// Asks the operations of the chosen sessions to stop, except `asking`.
    pub fn kill_sessions(&self, mut is_chosen: impl FnMut(SessionId) -> bool, asking: u32) {
        for slot in self.registry.slots.lock().values() {
            let details = slot.details.lock();
            let opid = slot.running.load(Ordering::Acquire);
            if opid != 0 && opid != asking && details.session.is_some_and(&mut is_chosen) {
                slot.killed.store(opid, Ordering::Release);
                slot.stop.ring();
            }
        }
    }

    /// The sessions with running operations.
    pub fn sessions_at_work(&self) -> HashSet<SessionId> {
        let slots = self.registry.slots.lock();
        let at_work = slots.values().filter(|slot| slot.running.load(Ordering::Acquire) != 0);
        at_work.filter_map(|slot| slot.details.lock().session).collect()
    }

    /// All connections that have run a command, by connection id.
    pub fn observe(&self) -> Vec<Observed> {
        let slots: Vec<_> = self.registry.slots.lock().values().cloned().collect();
        let mut observed: Vec<_> = slots.iter().map(|slot| slot.observe()).collect();
        observed.sort_by_key(|observed| observed.connection);
        observed
    }
}

impl Registration {
    /// Begins an operation of a client with this `metadata`. It ends when the returned value is dropped.
    pub fn begin(&self, beginning: &Beginning<'_>, metadata: Option<&DocumentBuf>) -> RunningOperation {
        // Few operations move between threads, so a cheap load rules the move out before the costlier exchange.
        let moved = match self.slot.moving.load(Ordering::Acquire) {
            0 => 0,
            _ => self.slot.moving.swap(0, Ordering::AcqRel),
        };
        let opid = if moved == 0 { next_opid(&self.registry.last_opid) } else { moved };
        let mut details = self.slot.details.lock();
        if moved == 0 {
            details.slowing = Slowing::None;
        }
        details.entry = beginning.entry;
        details.database.clear();
        details.database.push_str(beginning.database);
        let command = beginning.command;
        details.is_writing_for_body = beginning.entry.changes.is_asked_for(command);
        details.is_command_cut = command.len_bytes() > COMMAND_BYTES_MAX;
        keep_command(&mut details.command, command);
        let started = self.slot.clock.now();
        details.started = started;
        details.session = beginning.session;
        details.is_held_back = false;
        details.is_done = false;
        if details.metadata.is_none() {
            // Clients send their metadata once, in their first hello.
            details.metadata = metadata.cloned();
        }
        // Stored under the lock, so that a reader that sees the id also sees the details that belong to it.
        self.slot.running.store(opid, Ordering::Release);
        drop(details);
        RunningOperation {
            slot: Arc::clone(&self.slot),
            entry: beginning.entry,
            opid,
            started,
            waited: Duration::ZERO,
            waits_since: None,
        }
    }

    /// Ends the operation that was about to move to another thread and did not.
    pub fn end_move(&self) {
        if self.slot.moving.swap(0, Ordering::AcqRel) != 0 {
            self.slot.running.store(0, Ordering::Release);
        }
    }

    /// Notes the user who is logged in from now on.
    pub fn note_user(&self, user: Option<Owner>) {
        self.slot.details.lock().user = user;
    }

    /// A handle for noting that the client has disconnected.
    pub fn absence(&self) -> Absence {
        Absence(Arc::clone(&self.slot))
    }
}

/// The next operation id: a positive 32-bit integer, as clients expect; after the largest the ids start again.
fn next_opid(last: &AtomicU32) -> u32 {
    let next = || last.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & (i32::MAX as u32);
    match next() {
        0 => next(),
        opid => opid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::ArrayBuf;
    use bunko_request::facts::Changes;

    const FIND: CommandFacts = CommandFacts { name: "find", ..CommandFacts::PLAIN };

    #[test]
    fn connections_are_seen_while_they_live() {
        let operations = Operations::new(Clock::standing(0));
        let connection = operations.register(3, Peer::Tcp(([127, 0, 0, 1], 5).into()));
        let mut many = ArrayBuf::new();
        (0..1000).for_each(|number| {
            many.push(number);
        });
        let command = DocumentBuf::new().with("insert", "c").with("documents", &many).with("ordered", true);
        let command_shown = command.as_ref();
        let beginning = Beginning { entry: &FIND, database: "test", command: command_shown, session: None };
        let operation = connection.begin(&beginning, None);
        let observed = operations.observe();
        assert_eq!(observed[0].opid, operation.opid());
        assert_eq!(observed[0].command, DocumentBuf::new().with("insert", "c").with("ordered", true));
        drop(operation);
        assert_eq!(operations.observe()[0].opid, 0);
        drop(connection);
        assert!(operations.observe().is_empty());
    }

    #[test]
    fn an_operation_whose_reply_waits_writes_no_more_and_can_be_killed() {
        const INSERT: CommandFacts = CommandFacts { name: "insert", changes: Changes::Other, ..CommandFacts::PLAIN };
        let operations = Operations::new(Clock::standing(0));
        let connection = operations.register(3, Peer::Tcp(([127, 0, 0, 1], 5).into()));
        let command = DocumentBuf::new().with("insert", "c");
        let command = command.as_ref();
        let beginning = Beginning { entry: &INSERT, database: "test", command, session: None };
        let operation = connection.begin(&beginning, None);
        assert!(operations.is_one_writing());
        operation.note_done();
        assert!(!operations.is_one_writing() && !operation.is_killed());
        operations.kill(operation.opid());
        assert!(operation.is_killed());
        drop(operation);
        let next = connection.begin(&beginning, None);
        assert!(operations.is_one_writing() && !next.is_killed());
    }

    #[test]
    fn an_operation_that_moves_to_another_thread_stays_killed() {
        let operations = Operations::new(Clock::standing(0));
        let connection = operations.register(3, Peer::Tcp(([127, 0, 0, 1], 5).into()));
        let command = DocumentBuf::new().with("find", "c");
        let begin = || {
            let command = command.as_ref();
            connection.begin(&Beginning { entry: &FIND, database: "test", command, session: None }, None)
        };
        let first = begin();
        let opid = first.opid();
        first.note_move();
        drop(first);
        operations.kill(opid);
        let second = begin();
        let observed = operations.observe();
        assert_eq!((second.opid(), observed[0].opid, observed[0].is_killed), (opid, opid, true));
        drop(second);
        assert_eq!(operations.observe()[0].opid, 0);
        let third = begin();
        assert_ne!(third.opid(), opid, "the next operation is another one");
        third.note_move();
        drop(third);
        connection.end_move();
        assert_eq!(operations.observe()[0].opid, 0, "it was refused on the other thread");
    }
}
