//! The member's role, which every commit asks for while it holds the store's gate.
//!
//! ```text
//!   Standalone ──(the server joins a set)──▶ Secondary ──begin_term──▶ Primary { term }
//!                                               ▲                           │
//!                                               └────────step_down──────────┘
//! ```
//! A change of role holds the chains' lock and the gate exclusively: no batch is in flight, and an open chain has ended
//! or was abandoned before.
//!
//! **Invariant:** a record is appended only in the role that its commit found under the gate.

use crate::planted::{self, Bug};
use crate::{Result, StorageError, Store};
use std::sync::atomic::{AtomicU64, Ordering};

/// The role of a store, which decides whether it takes commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Not the store of a set's member: it takes writes, in no term.
    Standalone,
    /// The store of a set's primary.
    Primary {
        /// The term in which it was elected, from 1.
        term: u64,
    },
    /// The store of a set's member that is not its primary: it refuses commits.
    Secondary,
}

/// The role, in a form that a commit reads with one load.
#[derive(Default)]
pub(crate) struct RoleCell(AtomicU64);

const STANDALONE: u64 = 0;
const SECONDARY: u64 = u64::MAX;

impl RoleCell {
    pub fn new(role: Role) -> Self {
        let cell = Self::default();
        cell.set(role);
        cell
    }

    pub fn get(&self) -> Role {
        match self.0.load(Ordering::Acquire) {
            STANDALONE => Role::Standalone,
            SECONDARY => Role::Secondary,
            term => Role::Primary { term },
        }
    }

    /// Called with the gate held exclusively.
    pub fn set(&self, role: Role) {
        let encoded = match role {
            Role::Standalone => STANDALONE,
            Role::Primary { term } => term,
            Role::Secondary => SECONDARY,
        };
        self.0.store(encoded, Ordering::Release);
    }

    /// Called with the gate or the chains' lock held, so that the answer stays true until the record is applied.
    ///
    /// # Errors
    /// [`StorageError::NotPrimary`]
    pub fn check(&self) -> Result<()> {
        // The lock orders this load.
        let is_secondary = self.0.load(Ordering::Relaxed) == SECONDARY;
        if is_secondary && !planted::active(Bug::SecondaryWrites) { Err(StorageError::NotPrimary) } else { Ok(()) }
    }
}

impl Store {
    /// The store's role now.
    pub fn role(&self) -> Role {
        self.role.get()
    }

    /// Makes the store a secondary's: from here on it refuses commits. Returns once no commit is in flight.
    pub fn step_down(&self) {
        let _no_open_chain = self.chain.lock();
        let _no_batch_in_flight = self.gate.write();
        self.role.set(Role::Secondary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::{Batch, EngineTable, KeyspaceId, RecordId, StoreOptions, Survival};

    fn insertion(record: u64) -> Batch<'static> {
        let mut batch = Batch::new();
        batch.insert_record(KeyspaceId(7), RecordId(record), vec![7; 100]);
        batch
    }

    #[test]
    fn a_secondary_refuses_all_commits_and_nothing_is_written() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (own, told) = fake("own", Survival::Durable);
        let store = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
        store.commit(&insertion(1)).expect("a standalone store takes writes");
        store.step_down();
        assert_eq!(store.role(), Role::Secondary);
        let (end, visible, applied) = (store.last_position(), store.visible_end(), told.applied.lock().len());
        let mut held_up = Batch::new();
        for record in 0..17 << 10 {
            held_up.insert_record(KeyspaceId(7), RecordId(record), vec![7]);
        }
        let refusals = [
            store.commit(&insertion(2)).map(drop),
            store.commit(&Batch::new()).map(drop),
            store.commit_placed(&insertion(2)).map(drop),
            store.commit(&held_up).map(drop),
            store.commit_chain(&[insertion(2), insertion(3)]).map(drop),
        ];
        for refusal in refusals {
            assert!(matches!(refusal, Err(StorageError::NotPrimary)), "a promise is broken: {refusal:?}");
        }
        assert_eq!((store.last_position(), store.visible_end(), told.applied.lock().len()), (end, visible, applied));
        store.begin_term(1).expect("begins");
        assert_eq!(store.role(), Role::Primary { term: 1 });
        store.commit(&insertion(2)).expect("a primary takes writes");
        store.close().expect("closes");
    }

    #[test]
    fn a_chain_that_has_begun_ends_before_the_role_changes() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (own, told) = fake("own", Survival::Durable);
        let store = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
        // The engine cannot apply the chain while this is locked.
        let applied = told.applied.lock();
        std::thread::scope(|scope| {
            let chain = scope.spawn(|| store.commit_chain(&[insertion(1), insertion(2)]));
            while store.chain.try_lock().is_some() {
                std::thread::yield_now();
            }
            let visible = store.visible_end();
            let down = scope.spawn(|| store.step_down());
            // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!((store.role(), store.visible_end()), (Role::Standalone, visible), "the chain is not whole yet");
            drop(applied);
            chain.join().expect("no panic").expect("it had begun");
            down.join().expect("no panic");
            assert!(store.visible_end() > visible);
        });
        assert_eq!(told.applied.lock().len(), 2);
        let refused = store.commit_chain(&[insertion(3), insertion(4)]);
        assert!(matches!(refused, Err(StorageError::NotPrimary)), "{refused:?}");
        assert_eq!(told.applied.lock().len(), 2);
        store.close().expect("closes");
    }
}
