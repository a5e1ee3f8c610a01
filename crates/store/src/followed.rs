//! Who keeps something beside the engines of what is in a record store is told which of its records change.
//!
//! A change is noted before any view shows it, with the place of its batch in the log. So whoever takes a snapshot, and then
//! what was noted before that, has all that the snapshot shows.

use crate::{Effect, Effects, KeyspaceId, Lsn, RecordId, Store};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// So many changes are noted, 16 bytes each; from then on the follower has to read all records again.
const CHANGES_MAX: usize = 1 << 20;

/// The record stores that are followed.
#[derive(Default)]
pub(crate) struct Followed {
    /// Whether there are any, which writers ask.
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
    /// The last change that found no room.
    lost: Option<Lsn>,
}

/// What a follower is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// These records were inserted, replaced or deleted, some of them more than once.
    Records(Vec<RecordId>),
    /// Any may have been.
    All,
}

impl ChangedRecords {
    /// Whether nothing changed that anybody can see.
    pub fn are_none(&self) -> bool {
        let noted = self.noted.lock();
        noted.changes.is_empty() && noted.lost.is_none()
    }

    /// Takes what changed before a place in the log: that of a snapshot that was taken before this is asked.
    pub fn take_before(&self, end: Lsn) -> Changes {
        let mut noted = self.noted.lock();
        if let Some(last) = noted.lost {
            // What is noted behind it stays.
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

impl Followed {
    /// Notes what a batch changes, before any engine has it.
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
    /// Follows a record store: from now on its changes are noted, for as long as the follower is kept. All that changed
    /// before is in each snapshot that is taken afterwards.
    pub fn follow(&self, keyspace: KeyspaceId) -> Arc<ChangedRecords> {
        let changed = Arc::<ChangedRecords>::default();
        // A batch in flight has passed the place where it would be noted.
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

    #[test]
    fn what_a_snapshot_does_not_show_is_kept_for_the_next() {
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
