//! Table of the records and unique keys that transactions have claimed until they end.
//!
//! A lock of the `LockTable` belongs to a thread for the time of one write; a claim belongs to a transaction, from its
//! first write to its end. A writer outside transactions takes its locks and then looks here. If a transaction owns a
//! record or key that the writer wants to change, the writer waits and tries again.
//!
//! **Invariant:** an owner is entered and looked up under the lock of the owned record or key.

use super::owner::Owner;
use crate::{Collection, Index};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_store::{Bell, KeyspaceId, RecordId};
use foldhash::fast::RandomState;
use parking_lot::{Condvar, Mutex};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// A record or key that a transaction can own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owned {
    Record(KeyspaceId, RecordId),
    /// A key of a unique index, without the record number after it.
    Key(KeyspaceId, Box<[u8]>),
}

impl Owned {
    pub fn record(collection: &Collection, record: RecordId) -> Self {
        Self::Record(collection.records, record)
    }

    pub fn key(index: &Index, own_part: &[u8]) -> Self {
        Self::Key(index.keyspace, own_part.into())
    }
}

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The record or key was free, and is claimed now.
    Now,
    /// The transaction already owned the record or key.
    Before,
    /// Another transaction owns the record or key.
    ByOther,
}

/// The owners of a catalog.
#[derive(Default)]
pub(crate) struct Owners {
    /// Number of owned records and keys; while it is zero, the table is not searched. A thread that holds the lock of
    /// an owned record or key sees a number above zero, because the owner was entered under the same lock.
    count: AtomicUsize,
    /// Writes that met a claim of another transaction, or a change made after their snapshot.
    conflicts: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    owned: HashMap<Owned, Owner, RandomState>,
    /// Writers that wait, by record or key: a release wakes only the writers that wait for it.
    waiting: HashMap<Owned, Queue, RandomState>,
    /// Transactions that wait, by record or key, the next one first. A release calls one of them: if all were called,
    /// all but one would fail.
    turns: HashMap<Owned, VecDeque<QueuePlace>, RandomState>,
}

/// A waiting transaction's place in the queue.
struct QueuePlace {
    /// The transaction with the earliest deadline comes first.
    until: Instant,
    bell: Arc<Bell>,
}

/// Writers that wait for one record or key.
#[derive(Default)]
struct Queue {
    released: Arc<Condvar>,
    waiters: usize,
}

impl Owners {
    /// Number of conflicts since the start.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::Relaxed)
    }

    /// Counts a write that met a claim of another transaction, or a change made after its snapshot.
    pub fn note_conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether any record or key is owned.
    pub fn are_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Gives `owned` to `owner` if it is free. The caller holds the lock of `owned`.
    pub fn claim(&self, owned: &Owned, owner: &Owner) -> Claimed {
        let mut table = self.table.lock();
        match table.owned.get(owned) {
            Some(present) if present == owner => Claimed::Before,
            Some(_) => {
                self.note_conflict();
                Claimed::ByOther
            }
            None => {
                table.owned.insert(owned.clone(), owner.clone());
                if !table.turns.is_empty() && table.turns.contains_key(owned) {
                    owner.note_wait();
                }
                self.count.store(table.owned.len(), Ordering::Relaxed);
                Claimed::Now
            }
        }
    }

    /// A bell that rings when it is the caller's turn to claim `owned`; it has already rung if `owned` is free. The
    /// caller calls [`Owners::leave`] or [`Owners::withdraw`] once it has tried or given up.
    pub fn queue(&self, owned: &Owned, until: Instant) -> Arc<Bell> {
        let mut table = self.table.lock();
        let Some(owner) = table.owned.get(owned) else { return rung() };
        owner.note_wait();
        let bell = Arc::<Bell>::default();
        let queue = table.turns.entry(owned.clone()).or_default();
        let place = queue.partition_point(|place| place.until <= until);
        queue.insert(place, QueuePlace { until, bell: Arc::clone(&bell) });
        bell
    }

    /// Ends a wait that [`Owners::queue`] began, without calling the next one: the caller may have been called and will
    /// claim later.
    pub fn withdraw(&self, owned: &Owned, bell: &Arc<Bell>) {
        self.table.lock().withdraw(owned, bell);
    }

    /// Ends a wait that [`Owners::queue`] began, and calls the next one if `owned` is free.
    pub fn leave(&self, owned: &Owned, bell: &Arc<Bell>) {
        let mut table = self.table.lock();
        table.withdraw(owned, bell);
        let next = if table.owned.contains_key(owned) { None } else { table.call_next(owned) };
        drop(table);
        if let Some(next) = next {
            next.ring();
        }
    }

    /// The first of `wanted` that a transaction owns; `None` if all are free. The caller holds the locks of all of
    /// them.
    pub fn first_owned(&self, wanted: impl IntoIterator<Item = Owned>) -> Option<Owned> {
        let table = self.table.lock();
        wanted.into_iter().find(|wanted| table.owned.contains_key(wanted))
    }

    /// Waits until no transaction owns `owned`. The caller holds no locks.
    /// # Errors
    /// As `OperationContext::check`, which includes `Interrupted` if the operation is killed.
    pub fn wait(&self, owned: &Owned, operation: &dyn OperationSource) -> Result<()> {
        let mut table = self.table.lock();
        let Some(owner) = table.owned.get(owned) else { return Ok(()) };
        owner.note_wait();
        self.note_conflict();
        let queue = table.waiting.entry(owned.clone()).or_default();
        queue.waiters += 1;
        let released = Arc::clone(&queue.released);
        let outcome = loop {
            if !table.owned.contains_key(owned) {
                break Ok(());
            }
            match operation.operation().may_wait_until() {
                Ok(until) => released.wait_until(&mut table, until),
                Err(failure) => break Err(failure),
            };
        };
        if let Entry::Occupied(mut queue) = table.waiting.entry(owned.clone()) {
            queue.get_mut().waiters -= 1;
            if queue.get().waiters == 0 {
                queue.remove();
            }
        }
        outcome
    }

    /// Releases everything that one owner has; `owned` must list all of it.
    pub fn release(&self, owned: &[Owned]) {
        if owned.is_empty() {
            return;
        }
        let mut table = self.table.lock();
        let (mut woken, mut called) = (Vec::new(), Vec::new());
        for owned in owned {
            table.owned.remove(owned);
            called.extend(table.call_next(owned));
            if !table.waiting.is_empty() {
                woken.extend(table.waiting.get(owned).map(|queue| Arc::clone(&queue.released)));
            }
        }
        if table.owned.is_empty() {
            table.owned.shrink_to_fit();
        }
        self.count.store(table.owned.len(), Ordering::Relaxed);
        drop(table);
        for released in woken {
            released.notify_all();
        }
        for bell in called {
            bell.ring();
        }
    }
}

impl Table {
    fn withdraw(&mut self, owned: &Owned, bell: &Arc<Bell>) {
        let Entry::Occupied(mut queue) = self.turns.entry(owned.clone()) else { return };
        queue.get_mut().retain(|place| !Arc::ptr_eq(&place.bell, bell));
        if queue.get().is_empty() {
            queue.remove();
        }
    }

    /// Takes the next transaction out of the queue for `owned` and returns its bell; `None` if none waits.
    fn call_next(&mut self, owned: &Owned) -> Option<Arc<Bell>> {
        if self.turns.is_empty() {
            return None;
        }
        let Entry::Occupied(mut queue) = self.turns.entry(owned.clone()) else { return None };
        let next = queue.get_mut().pop_front();
        if queue.get().is_empty() {
            queue.remove();
        }
        next.map(|place| place.bell)
    }
}

/// A bell that has already rung.
pub(super) fn rung() -> Arc<Bell> {
    let bell = Bell::default();
    bell.ring();
    Arc::new(bell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_errors::{ErrorCode, Failure};
    use bunko_operation::{Interruption, MemoryLimits, OperationContext};
    use std::time::Duration;

    struct Killed;

    impl Interruption for Killed {
        fn reason(&self) -> Option<Failure> {
            Some(Failure::new(ErrorCode::INTERRUPTED, "killed"))
        }
    }

    #[test]
    fn writers_wait_for_owned_keys() {
        let owners = Arc::new(Owners::default());
        let (one, other) = (Owner::default(), Owner::default());
        let record = Owned::Record(KeyspaceId(1), RecordId(2));
        let key = Owned::Key(KeyspaceId(1), Box::from(b"key".as_slice()));
        assert!(!owners.are_any());
        assert_eq!(owners.claim(&record, &one), Claimed::Now);
        assert_eq!(owners.claim(&record, &one), Claimed::Before);
        assert_eq!(owners.claim(&record, &other), Claimed::ByOther);
        assert_eq!(owners.claim(&key, &other), Claimed::Now);
        assert_eq!(owners.first_owned([Owned::Record(KeyspaceId(1), RecordId(3)), key.clone()]), Some(key.clone()));
        let waiting = {
            let (owners, record) = (Arc::clone(&owners), record.clone());
            std::thread::spawn(move || owners.wait(&record, &*OperationContext::unlimited()).expect("may wait"))
        };
        // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
        std::thread::sleep(Duration::from_millis(10));
        assert!(!waiting.is_finished() && owners.are_any());
        owners.release(std::slice::from_ref(&record));
        waiting.join().expect("no panic");
        owners.release(&[key]);
        assert!(!owners.are_any());
        assert_eq!(owners.conflicts(), 2, "who claimed and who waited");
    }

    #[test]
    fn waiters_take_turns_and_the_least_time_left_goes_first() {
        let owners = Owners::default();
        let owner = Owner::default();
        let record = Owned::Record(KeyspaceId(1), RecordId(2));
        let now = Instant::now();
        let queue = |seconds| owners.queue(&record, now + Duration::from_secs(seconds));
        assert_eq!(queue(1).rings(), 1, "nobody owns it");
        assert_eq!(owners.claim(&record, &owner), Claimed::Now);
        let bells = [queue(3), queue(2), queue(3), queue(9)];
        let rings = || bells.each_ref().map(|bell| bell.rings());
        owners.release(std::slice::from_ref(&record));
        assert_eq!(rings(), [0, 1, 0, 0], "all others would come in vain");
        assert_eq!(owners.claim(&record, &owner), Claimed::Now);
        owners.leave(&record, &bells[1]);
        assert_eq!(rings(), [0, 1, 0, 0], "it is owned again");
        owners.leave(&record, &bells[0]);
        owners.release(std::slice::from_ref(&record));
        assert_eq!(rings(), [0, 1, 1, 0], "who has left is not called");
        owners.withdraw(&record, &bells[2]);
        assert_eq!(rings(), [0, 1, 1, 0], "who was called may still come");
        owners.leave(&record, &bells[2]);
        assert_eq!(rings(), [0, 1, 1, 1], "who did not take it lets the next one in");
        owners.leave(&record, &bells[3]);
        assert!(owners.table.lock().turns.is_empty());
    }

    #[test]
    fn no_waiter_is_left_in_a_queue() {
        let owners = Arc::new(Owners::default());
        let owner = Owner::default();
        let records = [2, 3].map(|id| Owned::Record(KeyspaceId(1), RecordId(id)));
        for record in &records {
            assert_eq!(owners.claim(record, &owner), Claimed::Now);
        }
        // An operation that may not wait longer leaves.
        let killed = OperationContext::new(Arc::new(Killed), MemoryLimits::none());
        assert!(owners.wait(&records[0], &*killed).is_err());
        assert!(owners.table.lock().waiting.is_empty());
        let waiting = records.clone().map(|record| {
            let owners = Arc::clone(&owners);
            std::thread::spawn(move || owners.wait(&record, &*OperationContext::unlimited()).expect("may wait"))
        });
        while owners.table.lock().waiting.len() < 2 {
            std::thread::yield_now();
        }
        let [first, second] = waiting;
        owners.release(&records[..1]);
        first.join().expect("woken");
        assert!(!second.is_finished());
        owners.release(&records[1..]);
        second.join().expect("woken");
        assert!(owners.table.lock().waiting.is_empty());
    }
}
