//! What has been applied since the last checkpoint, in memory.
//!
//! Our own, not the tree's: the tree holds a lock over the fsyncs with which it registers a flush, and whoever would
//! insert into its memtable waits for the disk meanwhile. B-trees per keyspace are also some three times as fast as a
//! skip list: a node's keys stand side by side.

use bunko_store::{Direction, KeyspaceId};
use lsm_tree::{InternalValue, SeqNo, UserKey, UserValue, ValueType};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an entry costs beside its bytes: key, value, version and its share of a node.
const ENTRY_BYTES: u64 = 104;
/// Entries that a walk copies under one lock.
const WALK_ENTRIES: usize = 64;

/// All keyspaces' recent entries.
#[derive(Default)]
pub(crate) struct Memtable {
    keyspaces: RwLock<FxHashMap<KeyspaceId, Arc<Shelf>>>,
    bytes: AtomicU64,
}

/// One keyspace's entries by key.
type Shelf = RwLock<BTreeMap<UserKey, Version>>;

/// A value, or its deletion, and what was before.
struct Version {
    lsn: SeqNo,
    value: Option<UserValue>,
    older: Option<Box<Version>>,
}

impl Version {
    /// The newest version below `before`.
    fn seen(&self, before: SeqNo) -> Option<&Self> {
        let mut version = self;
        while version.lsn >= before {
            version = version.older.as_deref()?;
        }
        Some(version)
    }
}

impl Memtable {
    fn shelf(&self, keyspace: KeyspaceId) -> Option<Arc<Shelf>> {
        self.keyspaces.read().get(&keyspace).cloned()
    }

    /// Puts a value, or a deletion; returns the memtable's size in bytes.
    pub fn put(&self, keyspace: KeyspaceId, key: &[u8], lsn: SeqNo, value: Option<&[u8]>) -> u64 {
        let shelf =
            self.shelf(keyspace).unwrap_or_else(|| Arc::clone(self.keyspaces.write().entry(keyspace).or_default()));
        let version = Version { lsn, value: value.map(UserValue::from), older: None };
        {
            let mut shelf = shelf.write();
            if let Some(newest) = shelf.get_mut(key) {
                // Writers of one key are in order of their LSNs: their locks see to it.
                let older = std::mem::replace(newest, version);
                newest.older = Some(Box::new(older));
            } else {
                shelf.insert(UserKey::from(key), version);
            }
        }
        let bytes = ENTRY_BYTES + (key.len() + value.map_or(0, <[u8]>::len)) as u64;
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// What is known of a key below `before`; nothing where this memtable does not know it.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8], before: SeqNo) -> Option<Known> {
        let keyspaces = self.keyspaces.read();
        let shelf = keyspaces.get(&keyspace)?.read();
        Some(match &shelf.get(key)?.seen(before)?.value {
            Some(value) => Known::Value(value.clone()),
            None => Known::Deleted,
        })
    }

    /// Every entry in the tree's form and order; only the newest version of each where older ones may be forgotten.
    pub fn in_order(&self, keep: Keep) -> impl Iterator<Item = InternalValue> {
        let mut keyspaces: Vec<_> = self.keyspaces.read().iter().map(|(id, shelf)| (*id, Arc::clone(shelf))).collect();
        keyspaces.sort_by_key(|(id, _)| *id);
        keyspaces.into_iter().flat_map(move |(keyspace, shelf)| {
            let prefix = keyspace.0.to_be_bytes();
            let mut entries = Vec::new();
            for (key, newest) in shelf.read().iter() {
                let key = UserKey::from([prefix.as_slice(), key].concat());
                let mut version = Some(newest);
                while let Some(entry) = version {
                    entries.push(internal(key.clone(), entry));
                    version = entry.older.as_deref().filter(|_| keep == Keep::AllVersions);
                }
            }
            entries
        })
    }

    /// Walks a keyspace.
    pub fn walk(
        &self,
        keyspace: KeyspaceId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        direction: Direction,
        before: SeqNo,
    ) -> MemtableWalk {
        MemtableWalk { shelf: self.shelf(keyspace), range, direction, before, entries: VecDeque::new() }
    }
}

/// What a memtable knows of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Known {
    Value(UserValue),
    Deleted,
}

/// Which versions a flush writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    AllVersions,
    Newest,
}

fn internal(key: UserKey, version: &Version) -> InternalValue {
    match &version.value {
        Some(value) => InternalValue::from_components(key, value.clone(), version.lsn, ValueType::Value),
        None => InternalValue::new_tombstone(key, version.lsn),
    }
}

/// A walk that holds no lock between calls.
pub(crate) struct MemtableWalk {
    /// `None` once the end is reached.
    shelf: Option<Arc<Shelf>>,
    range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    direction: Direction,
    before: SeqNo,
    entries: VecDeque<(UserKey, Option<UserValue>)>,
}

impl MemtableWalk {
    /// The next key and its value, `None` for a deleted one.
    pub fn next(&mut self) -> Option<(UserKey, Option<UserValue>)> {
        if self.entries.is_empty() {
            self.refill();
        }
        self.entries.pop_front()
    }

    fn refill(&mut self) {
        let Some(shelf) = &self.shelf else { return };
        if is_empty(&self.range) {
            self.shelf = None;
            return;
        }
        let mut last = None;
        {
            let shelf = shelf.read();
            let range = (self.range.0.as_ref().map(Vec::as_slice), self.range.1.as_ref().map(Vec::as_slice));
            let mut take = |(key, version): (&UserKey, &Version)| {
                last = Some(key.to_vec());
                if let Some(version) = version.seen(self.before) {
                    self.entries.push_back((key.clone(), version.value.clone()));
                }
                self.entries.len() < WALK_ENTRIES
            };
            let mut entries = shelf.range::<[u8], _>(range);
            let is_at_end = match self.direction {
                Direction::Forward => entries.all(&mut take),
                Direction::Backward => entries.rev().all(&mut take),
            };
            if is_at_end {
                last = None;
            }
        }
        match (last, self.direction) {
            (None, _) => self.shelf = None,
            (Some(last), Direction::Forward) => self.range.0 = Bound::Excluded(last),
            (Some(last), Direction::Backward) => self.range.1 = Bound::Excluded(last),
        }
    }
}

/// Ranges that a B-tree would panic on.
fn is_empty(range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    match range {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYSPACE: KeyspaceId = KeyspaceId(2);
    const ALL: (Bound<Vec<u8>>, Bound<Vec<u8>>) = (Bound::Unbounded, Bound::Unbounded);

    fn memtable() -> Memtable {
        let memtable = Memtable::default();
        for number in 0..200_u8 {
            memtable.put(KEYSPACE, &[number], u64::from(number) + 10, Some(&[number]));
        }
        memtable.put(KEYSPACE, &[5], 500, None);
        memtable.put(KEYSPACE, &[6], 501, Some(b"new"));
        memtable
    }

    #[test]
    fn reads_see_the_newest_version_below_theirs() {
        let memtable = memtable();
        let get = |key: u8, before| memtable.get(KEYSPACE, &[key], before);
        let value = |bytes: &[u8]| Some(Known::Value(UserValue::from(bytes)));
        assert_eq!(get(5, 1000), Some(Known::Deleted));
        assert_eq!(get(5, 500), value(&[5]));
        assert_eq!(get(5, 15), None);
        assert_eq!(get(6, 1000), value(b"new"));
        assert_eq!(get(250, 1000), None);
        assert_eq!(memtable.get(KeyspaceId(9), &[5], 1000), None);
    }

    #[test]
    fn walks_go_both_ways_and_stay_within_their_range() {
        let memtable = memtable();
        let keys = |range, direction, before| {
            let mut walk = memtable.walk(KEYSPACE, range, direction, before);
            std::iter::from_fn(|| walk.next()).map(|(key, _)| key[0]).collect::<Vec<_>>()
        };
        assert_eq!(keys(ALL, Direction::Forward, 1000), (0..200).collect::<Vec<_>>());
        assert_eq!(keys(ALL, Direction::Backward, 1000), (0..200).rev().collect::<Vec<_>>());
        assert_eq!(keys(ALL, Direction::Forward, 20), (0..10).collect::<Vec<_>>());
        let part = || (Bound::Excluded(vec![3]), Bound::Included(vec![6]));
        assert_eq!(keys(part(), Direction::Forward, 1000), [4, 5, 6]);
        assert_eq!(keys(part(), Direction::Backward, 1000), [6, 5, 4]);
        assert!(keys((Bound::Included(vec![9]), Bound::Excluded(vec![9])), Direction::Forward, 1000).is_empty());
    }

    #[test]
    fn a_flush_writes_versions_newest_first() {
        let memtable = memtable();
        let of_six = |keep| {
            let six = |entry: &InternalValue| entry.key.user_key[4] == 6;
            memtable.in_order(keep).filter(six).map(|entry| entry.key.seqno).collect::<Vec<_>>()
        };
        assert_eq!(of_six(Keep::AllVersions), [501, 16]);
        assert_eq!(of_six(Keep::Newest), [501]);
    }
}
