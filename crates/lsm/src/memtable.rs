//! What has been applied since the last checkpoint, in memory.
//!
//! Our own, not the tree's: the tree holds a lock over the fsyncs with which it registers a flush, and whoever would
//! insert into its memtable waits for the disk meanwhile. B-trees per keyspace are also some three times as fast as a
//! skip list: a node's keys stand side by side.

use bunko_store::{Direction, KeyspaceId};
use lsm_tree::{InternalValue, SeqNo, UserKey, UserValue, ValueType};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an entry costs beside its bytes: key, value, version and its share of a node.
const ENTRY_BYTES: u64 = 112;
/// What a version that is kept behind a newer one costs beside its bytes.
const OLDER_VERSION_BYTES: u64 = size_of::<Version>() as u64;
/// Entries that a walk copies under one lock.
const WALK_ENTRIES: usize = 64;

/// All keyspaces' recent entries.
#[derive(Default)]
pub(crate) struct Memtable {
    keyspaces: RwLock<FxHashMap<KeyspaceId, Arc<Shelf>>>,
    bytes: AtomicU64,
}

/// One keyspace's entries by key.
type Shelf = RwLock<BTreeMap<ShelfKey, Version>>;

/// A key behind its first eight bytes as a number, which order as the bytes do. Nearly all comparisons of a search end
/// with the number; comparing the bytes alone is a call each, some thirty of them for one key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ShelfKey {
    head: u64,
    bytes: UserKey,
}

impl From<&[u8]> for ShelfKey {
    fn from(key: &[u8]) -> Self {
        let head = key.first_chunk().copied().unwrap_or_else(|| {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            head
        });
        Self { head: u64::from_be_bytes(head), bytes: UserKey::from(key) }
    }
}

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

    /// Becomes the older one of two, unless no view from `oldest_view` on could see what is behind it: then that
    /// goes, and its place is used again. Whether there is one version more than before.
    fn supersede(&mut self, version: Self, oldest_view: SeqNo) -> Growth {
        let mut superseded = std::mem::replace(self, version);
        if superseded.lsn < oldest_view
            && let Some(mut place) = superseded.older.take()
        {
            *place = superseded;
            self.older = Some(place);
            return Growth::None;
        }
        self.older = Some(Box::new(superseded));
        Growth::OneVersion
    }
}

impl Drop for Version {
    /// One by one: as many may hang on each other as there were writes while a view was open, too many for the stack.
    fn drop(&mut self) {
        let mut older = self.older.take();
        while let Some(mut version) = older {
            older = version.older.take();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    None,
    OneVersion,
}

impl Memtable {
    fn shelf(&self, keyspace: KeyspaceId) -> Option<Arc<Shelf>> {
        self.keyspaces.read().get(&keyspace).cloned()
    }

    /// Puts a value, or a deletion, and forgets what no view from `oldest_view` on can see; returns the memtable's
    /// size in bytes.
    pub fn put(&self, keyspace: KeyspaceId, key: &[u8], lsn: SeqNo, value: Option<&[u8]>, oldest_view: SeqNo) -> u64 {
        let version = Version { lsn, value: value.map(UserValue::from), older: None };
        let keyspaces = self.keyspaces.read();
        let bytes = if let Some(shelf) = keyspaces.get(&keyspace) {
            put_on(shelf, key, version, oldest_view)
        } else {
            drop(keyspaces);
            let shelf = Arc::clone(self.keyspaces.write().entry(keyspace).or_default());
            put_on(&shelf, key, version, oldest_view)
        };
        if bytes == 0 {
            self.bytes.load(Ordering::Relaxed)
        } else {
            self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
        }
    }

    /// What is known of a key below `before`; nothing where this memtable does not know it.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8], before: SeqNo) -> Option<Known> {
        let keyspaces = self.keyspaces.read();
        let shelf = keyspaces.get(&keyspace)?.read();
        Some(match &shelf.get(&ShelfKey::from(key))?.seen(before)?.value {
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
                let key = UserKey::from([prefix.as_slice(), &key.bytes].concat());
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

/// Puts a version; the bytes that it takes beyond what was there.
fn put_on(shelf: &Shelf, key: &[u8], version: Version, oldest_view: SeqNo) -> u64 {
    let value_bytes = version.value.as_ref().map_or(0, |value| value.len() as u64);
    let mut shelf = shelf.write();
    match shelf.entry(ShelfKey::from(key)) {
        // Writers of one key are in order of their LSNs: their locks see to it.
        Entry::Occupied(mut newest) => match newest.get_mut().supersede(version, oldest_view) {
            Growth::None => 0,
            Growth::OneVersion => OLDER_VERSION_BYTES + value_bytes,
        },
        Entry::Vacant(place) => {
            place.insert(version);
            ENTRY_BYTES + key.len() as u64 + value_bytes
        }
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
            let bound = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| ShelfKey::from(key.as_slice()));
            let range = (bound(&self.range.0), bound(&self.range.1));
            let mut take = |(key, version): (&ShelfKey, &Version)| {
                last = Some(key.bytes.to_vec());
                if let Some(version) = version.seen(self.before) {
                    self.entries.push_back((key.bytes.clone(), version.value.clone()));
                }
                self.entries.len() < WALK_ENTRIES
            };
            let mut entries = shelf.range(range);
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
            memtable.put(KEYSPACE, &[number], u64::from(number) + 10, Some(&[number]), 0);
        }
        memtable.put(KEYSPACE, &[5], 500, None, 0);
        memtable.put(KEYSPACE, &[6], 501, Some(b"new"), 0);
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
    fn what_no_view_can_see_is_forgotten() {
        let memtable = memtable();
        let get = |before| memtable.get(KEYSPACE, &[6], before);
        let value = |bytes: &[u8]| Some(Known::Value(UserValue::from(bytes)));
        // A view as of 501 is open, which must not see that version but the one before.
        let bytes = memtable.put(KEYSPACE, &[6], 600, Some(b"newer"), 501);
        assert_eq!((get(601), get(502), get(501)), (value(b"newer"), value(b"new"), value(&[6])));
        // The oldest is as of 599 now.
        assert_eq!(memtable.put(KEYSPACE, &[6], 700, Some(b"newest"), 599), bytes + OLDER_VERSION_BYTES + 6);
        assert_eq!(memtable.put(KEYSPACE, &[6], 800, Some(b"last"), 701), bytes + OLDER_VERSION_BYTES + 6);
        assert_eq!((get(801), get(800), get(700)), (value(b"last"), value(b"newest"), None));
    }

    #[test]
    fn a_million_versions_are_dropped_without_a_stack_for_them() {
        let memtable = Memtable::default();
        for lsn in 1..1_000_000 {
            memtable.put(KEYSPACE, b"a", lsn, None, 0);
        }
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
    fn keys_order_as_their_bytes() {
        let mut keys: Vec<&[u8]> =
            vec![b"", b"\0", b"a", b"a\0", b"a\0\x01", b"abcdefgh", b"abcdefgh\0", b"abcdefghi", b"abcdefgz", b"b"];
        assert!(keys.is_sorted());
        keys.reverse();
        keys.sort_by_key(|key| ShelfKey::from(*key));
        assert!(keys.is_sorted());
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
