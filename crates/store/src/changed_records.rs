//! Tells followers which records of a record store change, for data that is kept beside the engines.
//!
//! A change is noted, with the position of its batch in the log, before any view shows it. So a follower that takes a
//! snapshot, and then the changes noted before it, has all changes that the snapshot shows.

use crate::{Effect, Effects, KeyspaceId, Lsn, RecordId, Store};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Maximum number of noted changes, 16 bytes each; beyond it the follower has to read all records again.
const CHANGES_MAX: usize = 1 << 20;

/// The record stores that have followers.
#[derive(Default)]
pub(crate) struct FollowedStores {
    /// Whether there are followers; writers check this first.
    are_any: AtomicBool,
    stores: RwLock<HashMap<KeyspaceId, Vec<Weak<ChangedRecords>>>>,
}

/// The records of a record store that changed since its follower last asked.
#[derive(Debug, Default)]
pub struct ChangedRecords {
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    changes: Vec<(Lsn, RecordId)>,
    /// Position of the last change that found `changes` full; the follower must then read all records again.
    lost: Option<Lsn>,
}

/// The changes since a follower's last call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// These records were inserted, replaced or deleted, some of them more than once.
    Records(Vec<RecordId>),
    /// Any record may have changed.
    All,
}

impl ChangedRecords {
    /// Whether no change has been noted.
    pub fn are_none(&self) -> bool {
        let noted = self.noted.lock();
        noted.changes.is_empty() && noted.lost.is_none()
    }

    /// Takes the changes before `end`, the position of a snapshot that must have been taken before this call.
    pub fn take_before(&self, end: Lsn) -> Changes {
        let mut noted = self.noted.lock();
        if let Some(last) = noted.lost {
            // Changes noted after it stay.
            if last < end {
                noted.lost = None;
            }
            return Changes::All;
        }
        let mut seen = Vec::new();
        noted.changes.retain(|(lsn, record)| {
            if *lsn < end {
                seen.push(*record);
            }
            *lsn >= end
        });
        Changes::Records(seen)
    }

    fn note(&self, lsn: Lsn, record: RecordId) {
        let mut noted = self.noted.lock();
        if noted.lost.is_some() || noted.changes.len() >= CHANGES_MAX {
            noted.changes = Vec::new();
            noted.lost = noted.lost.max(Some(lsn));
        } else {
            noted.changes.push((lsn, record));
        }
    }
}

impl FollowedStores {
    /// Notes the changes of a batch, before any engine applies it.
    pub(crate) fn note(&self, lsn: Lsn, effects: Effects<'_>) {
        if !self.are_any.load(Ordering::Acquire) {
            return;
        }
        let stores = self.stores.read();
        for effect in effects {
            let (Effect::PutRecord { keyspace, record, .. }
            | Effect::PlaceRecord { keyspace, record, .. }
            | Effect::DeleteRecord { keyspace, record, .. }) = effect
            else {
                continue;
            };
            let followers = stores.get(&keyspace).map_or(&[][..], Vec::as_slice);
            followers.iter().filter_map(Weak::upgrade).for_each(|changed| changed.note(lsn, record));
        }
    }
}

impl Store {
    /// Follows a record store: its changes are noted from now on, as long as the returned follower is kept. Every
    /// snapshot that is taken afterwards shows all earlier changes.
    pub fn follow(&self, keyspace: KeyspaceId) -> Arc<ChangedRecords> {
        let changed = Arc::<ChangedRecords>::default();
        // A batch or chain in flight may have passed the place where its changes would be noted. A chain does not hold
        // the gate.
        let _no_open_chain = self.chain.lock();
        let _no_batch_in_flight = self.gate.write();
        let mut stores = self.followed.stores.write();
        stores.retain(|_, followers| {
            followers.retain(|follower| follower.strong_count() > 0);
            !followers.is_empty()
        });
        stores.entry(keyspace).or_default().push(Arc::downgrade(&changed));
        self.followed.are_any.store(true, Ordering::Release);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::fake::fake;
    use crate::{EngineTable, STALL, StoreOptions, Survival};
    use std::path::Path;

    #[test]
    fn a_record_store_is_followed_when_no_chain_is_open() {
        let (own, _) = fake("own", Survival::Volatile);
        let store = Store::open(Path::new("touched by nobody"), StoreOptions::at_rest(), EngineTable::only(own));
        let store = store.expect("opens");
        std::thread::scope(|scope| {
            let chain = store.chain.lock();
            let following = scope.spawn(|| store.follow(KeyspaceId(7)));
            // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
            std::thread::sleep(20 * STALL);
            assert!(!following.is_finished(), "the chain's changes may not be noted");
            drop(chain);
            following.join().expect("no panic");
        });
    }

    #[test]
    fn changes_that_a_snapshot_does_not_show_are_kept_for_the_next() {
        let changed = ChangedRecords::default();
        changed.note(Lsn(10), RecordId(1));
        changed.note(Lsn(30), RecordId(2));
        changed.note(Lsn(20), RecordId(1));
        assert_eq!(changed.take_before(Lsn(30)), Changes::Records(vec![RecordId(1), RecordId(1)]));
        assert!(!changed.are_none());
        assert_eq!(changed.take_before(Lsn(31)), Changes::Records(vec![RecordId(2)]));
        assert!(changed.are_none());
    }

    #[test]
    fn too_many_changes_are_told_as_all_until_a_snapshot_shows_the_last() {
        let changed = ChangedRecords::default();
        for record in 0..=CHANGES_MAX as u64 {
            changed.note(Lsn(record), RecordId(record));
        }
        changed.note(Lsn(2 << 20), RecordId(7));
        assert_eq!(changed.take_before(Lsn(2 << 20)), Changes::All);
        assert_eq!(changed.take_before(Lsn((2 << 20) + 1)), Changes::All);
        assert_eq!(changed.take_before(Lsn(3 << 20)), Changes::Records(Vec::new()));
    }
}
