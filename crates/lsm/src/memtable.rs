//! The changes since the last checkpoint, in memory.
//!
//! The tree's own memtable is not used: the tree holds a lock during the fsyncs that register a flush, and inserts into
//! its memtable would wait for the disk. B-trees for each keyspace are also about three times as fast as a skip list,
//! because a node's keys stand side by side.

use crate::key_leaves::{KeyLeaf, KeyVersion};
use crate::key_value::KeyValue;
use crate::leaves::{Behind, Leaf, LeafEntry};
use bunko_store::{Direction, KeyspaceId, Location};
use bunko_versions::{Before, HeadKey, Put, Version, VersionedMap, Views, Walk};
use lsm_tree::{InternalValue, SeqNo, UserKey, UserValue, ValueType};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A value or a deletion.
pub(crate) type Known = bunko_versions::Known<UserValue>;

/// Bytes of an entry beside its key and value: its version and its share of a node.
const ENTRY_BYTES: u64 = 112;
/// Bytes of an older version beside its value.
const OLDER_VERSION_BYTES: u64 = size_of::<Version<UserValue>>() as u64;

/// A keyspace with at least this many keys is flushed into tables of its own.
const PART_KEYS_MIN: usize = 16 * 1024;
/// Number of keys that a flush copies, or that are freed, at a time, so that a flush never holds a second copy of a
/// whole keyspace.
const KEYS_AT_ONCE: usize = 256;

/// Recent entries of all keyspaces.
#[derive(Default)]
pub(crate) struct Memtable {
    keyspaces: RwLock<FxHashMap<KeyspaceId, Arc<Shelf>>>,
    bytes: AtomicU64,
}

/// Entries of one keyspace by key.
type Shelf = VersionedMap<ShelfKey, UserValue>;

/// Keys in the tree's type, which stores short ones without an allocation.
type ShelfKey = HeadKey<UserKey>;

impl Memtable {
    fn shelf(&self, keyspace: KeyspaceId) -> Option<Arc<Shelf>> {
        self.keyspaces.read().get(&keyspace).cloned()
    }

    /// Puts a value, or a deletion, and forgets versions that no view sees. Returns the memtable's size in bytes.
    pub fn put(&self, keyspace: KeyspaceId, key: &[u8], lsn: SeqNo, value: Option<&[u8]>, views: Views<'_>) -> u64 {
        let version_bytes = value.map_or(0, |value| value.len() as u64);
        let put = |shelf: &Shelf| shelf.put(ShelfKey::from(key), lsn, value.map(UserValue::from), views);
        let keyspaces = self.keyspaces.read();
        let put = if let Some(shelf) = keyspaces.get(&keyspace) {
            put(shelf)
        } else {
            drop(keyspaces);
            let shelf = Arc::clone(self.keyspaces.write().entry(keyspace).or_default());
            put(&shelf)
        };
        let bytes = match put {
            Put { before: Before::Nothing, .. } => ENTRY_BYTES + key.len() as u64 + version_bytes,
            Put { forgotten: None, .. } => OLDER_VERSION_BYTES + version_bytes,
            Put { forgotten: Some(_), .. } => return self.bytes.load(Ordering::Relaxed),
        };
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Approximate size in memory.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Number of keys.
    pub fn keys(&self) -> u64 {
        self.keyspaces.read().values().map(|shelf| shelf.key_count() as u64).sum()
    }

    /// The value or deletion of a key below `before`; `None` if this memtable has neither.
    pub fn get(&self, keyspace: KeyspaceId, key: &[u8], before: SeqNo) -> Option<Known> {
        self.keyspaces.read().get(&keyspace)?.get(&ShelfKey::from(key), before)
    }

    /// Whether the memtable has entries of a keyspace.
    pub fn has(&self, keyspace: KeyspaceId) -> bool {
        self.keyspaces.read().contains_key(&keyspace)
    }

    /// Whether the memtable has a key from `first` to `last`, even a deleted one.
    pub fn knows_any(&self, keyspace: KeyspaceId, first: &[u8], last: &[u8]) -> bool {
        self.shelf(keyspace).is_some_and(|shelf| shelf.has_any(ShelfKey::from(first)..=ShelfKey::from(last)))
    }

    /// All entries in the tree's form and order, in parts that become separate tables; with `Keep::Newest`, only the
    /// newest version of each key.
    ///
    /// A large keyspace is a part by itself. Most keyspaces grow at their end, so their tables follow each other and
    /// fit side by side into one run of the tree; tables of all keyspaces would all overlap.
    pub fn parts(&self, keep: Keep) -> Vec<impl Iterator<Item = InternalValue> + use<>> {
        let mut keyspaces: Vec<_> = self.keyspaces.read().iter().map(|(id, shelf)| (*id, Arc::clone(shelf))).collect();
        keyspaces.sort_by_key(|(id, _)| *id);
        let is_large = |shelf: &Shelf| shelf.key_count() >= PART_KEYS_MIN;
        let is_together = |one: &(_, Arc<Shelf>), next: &(_, Arc<Shelf>)| !is_large(&one.1) && !is_large(&next.1);
        let parts: Vec<Vec<_>> = keyspaces.chunk_by(is_together).map(<[_]>::to_vec).collect();
        let in_order = move |(keyspace, shelf)| InOrder { keyspace, shelf, keep, last: None, ahead: VecDeque::new() };
        parts.into_iter().map(|part| part.into_iter().flat_map(in_order)).collect()
    }

    /// Frees the memtable a few keys at a time, and reports the number of each step to `freed`. A keyspace that a walk
    /// is using at this instant is freed by that walk instead.
    pub fn free(self, mut freed: impl FnMut(u64)) {
        for shelf in self.keyspaces.into_inner().into_values().filter_map(Arc::into_inner) {
            shelf.free(KEYS_AT_ONCE, |keys| freed(keys as u64));
        }
    }

    /// The records of a keyspace, for long walks; `None` if there are none.
    pub fn records(&self, keyspace: KeyspaceId) -> Option<MemtableRecords> {
        self.shelf(keyspace).as_ref().map(|shelf| MemtableRecords(Arc::downgrade(shelf)))
    }

    /// The index keys of a keyspace, for walks in ascending order; `None` if there are none.
    pub fn keys_of(&self, keyspace: KeyspaceId) -> Option<MemtableKeys> {
        self.shelf(keyspace).as_ref().map(|shelf| MemtableKeys(Arc::downgrade(shelf)))
    }

    /// Walks a keyspace. The walk does not keep the memtable in memory, because cursors may stay open for long without
    /// being read.
    pub fn walk(
        &self,
        keyspace: KeyspaceId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
        direction: Direction,
        before: SeqNo,
    ) -> MemtableWalk {
        let direction = match direction {
            Direction::Forward => bunko_versions::Direction::Forward,
            Direction::Backward => bunko_versions::Direction::Backward,
        };
        let shelf = self.shelf(keyspace);
        let walk = |shelf| Walk::new(Arc::downgrade(shelf), ShelfKey::range(&range), direction, before);
        MemtableWalk(shelf.as_ref().map(walk))
    }
}

/// Records of one keyspace in ascending order, part by part. Does not keep the memtable in memory.
pub(crate) struct MemtableRecords(Weak<Shelf>);

/// A part of a memtable's records.
pub(crate) enum RecordsBehind {
    Leaf(Leaf),
    /// The memtable was freed; its entries are in the tables.
    Gone,
}

impl MemtableRecords {
    /// The next records from `from` on, each in the version that a view of everything below `before` sees. Takes the
    /// keyspace's lock once for all of them.
    pub fn leaf(&self, from: u64, before: SeqNo) -> RecordsBehind {
        let Some(shelf) = self.0.upgrade() else { return RecordsBehind::Gone };
        let mut entries = Vec::with_capacity(KEYS_AT_ONCE);
        let mut count = 0;
        let behind = from.checked_sub(1).map(|record| ShelfKey::from(record.to_be_bytes().as_slice()));
        let last = shelf.visit_next(behind.as_ref(), KEYS_AT_ONCE, |key, newest| {
            count += 1;
            let Some(version) = newest.seen(before) else { return };
            entries.push(LeafEntry::new(
                key.head(),
                version.lsn(),
                version.value().and_then(|value| Location::decode(value)),
            ));
        });
        let next = last.filter(|_| count == KEYS_AT_ONCE).and_then(|last| last.head().checked_add(1));
        let behind = next.map_or(Behind::Nothing, |next| Behind::Records(Some(next)));
        RecordsBehind::Leaf(Leaf::new(entries, behind))
    }
}

/// Index keys of one keyspace in ascending order, part by part. Does not keep the memtable in memory.
pub(crate) struct MemtableKeys(Weak<Shelf>);

/// A part of a memtable's index keys.
pub(crate) enum KeysFrom {
    /// Keys, and whether they are the last within the range.
    Leaf(KeyLeaf, bool),
    /// The memtable was freed; its entries are in the tables.
    Gone,
}

impl MemtableKeys {
    /// The first keys of a range, each in the version that a view of everything below `before` sees. Takes the
    /// keyspace's lock once for each `count` keys.
    pub fn leaf(&self, range: (Bound<&[u8]>, Bound<&[u8]>), count: usize, before: SeqNo) -> KeysFrom {
        let Some(shelf) = self.0.upgrade() else { return KeysFrom::Gone };
        let mut leaf = KeyLeaf::default();
        let mut from = range.0.map(ShelfKey::from);
        let end = range.1.map(ShelfKey::from);
        loop {
            let mut shown = 0;
            let last = shelf.visit_range((from.as_ref(), end.as_ref()), count, |key, newest| {
                shown += 1;
                let Some(version) = newest.seen(before) else { return };
                let record = version.value().and_then(|value| KeyValue::decode(value)).map(|value| value.record);
                leaf.push(key, KeyVersion::new(version.lsn(), record));
            });
            match last {
                // Goes on if none of these keys is visible: the caller would take an empty leaf for the end.
                Some(last) if shown == count && leaf.versions.is_empty() => from = Bound::Excluded(last),
                last => return KeysFrom::Leaf(leaf, last.is_none() || shown < count),
            }
        }
    }
}

/// The versions that a flush writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    AllVersions,
    Newest,
}

/// Iterates over a keyspace's entries in the tree's form and order.
struct InOrder {
    keyspace: KeyspaceId,
    shelf: Arc<Shelf>,
    keep: Keep,
    /// The last key that was copied.
    last: Option<ShelfKey>,
    ahead: VecDeque<InternalValue>,
}

impl Iterator for InOrder {
    type Item = InternalValue;

    fn next(&mut self) -> Option<InternalValue> {
        if self.ahead.is_empty() {
            let versions_max = if self.keep == Keep::Newest { 1 } else { usize::MAX };
            let mut tree_key = self.keyspace.0.to_be_bytes().to_vec();
            let prefix_bytes = tree_key.len();
            let ahead = &mut self.ahead;
            self.last = self.shelf.visit_next(self.last.as_ref(), KEYS_AT_ONCE, |key, newest| {
                tree_key.truncate(prefix_bytes);
                tree_key.extend_from_slice(key);
                let key = UserKey::from(tree_key.as_slice());
                ahead.extend(newest.all().take(versions_max).map(|version| internal(key.clone(), version)));
            });
        }
        self.ahead.pop_front()
    }
}

fn internal(key: UserKey, version: &Version<UserValue>) -> InternalValue {
    match version.value() {
        Some(value) => InternalValue::from_components(key, value.clone(), version.lsn(), ValueType::Value),
        None => InternalValue::new_tombstone(key, version.lsn()),
    }
}

/// A walk that holds no lock between calls; `None` if the memtable has no entries of the keyspace.
pub(crate) struct MemtableWalk(Option<Walk<ShelfKey, UserValue, Weak<Shelf>>>);

impl MemtableWalk {
    /// The next key and its value; `None` as value is a deletion.
    pub fn next(&mut self) -> Option<(UserKey, Option<UserValue>)> {
        self.0.as_mut()?.next().map(|(key, value)| (key.into_bytes(), value))
    }

    /// Whether the walk ended because the memtable was freed. Its entries are in the tables then.
    pub fn is_gone(&self) -> bool {
        self.0.as_ref().is_some_and(Walk::is_gone)
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
            memtable.put(KEYSPACE, &[number], u64::from(number) + 10, Some(&[number]), Views::from(0));
        }
        memtable.put(KEYSPACE, &[5], 500, None, Views::from(0));
        memtable.put(KEYSPACE, &[6], 501, Some(b"new"), Views::from(0));
        memtable
    }

    #[test]
    fn keyspaces_are_apart() {
        let memtable = memtable();
        let value = |bytes: &[u8]| Some(Known::Value(UserValue::from(bytes)));
        assert_eq!(memtable.get(KEYSPACE, &[5], 1000), Some(Known::Deleted));
        assert_eq!(memtable.get(KEYSPACE, &[6], 1000), value(b"new"));
        assert_eq!(memtable.get(KeyspaceId(9), &[5], 1000), None);
    }

    #[test]
    fn versions_are_counted_until_they_are_forgotten() {
        let memtable = memtable();
        let bytes = memtable.put(KEYSPACE, &[6], 600, Some(b"newer"), Views::from(501));
        assert_eq!(
            memtable.put(KEYSPACE, &[6], 700, Some(b"newest"), Views::from(501)),
            bytes + OLDER_VERSION_BYTES + 6
        );
        assert_eq!(memtable.put(KEYSPACE, &[6], 800, Some(b"last"), Views::from(701)), bytes + OLDER_VERSION_BYTES + 6);
        assert_eq!(
            memtable.put(KEYSPACE, b"new", 900, None, Views::from(701)),
            bytes + OLDER_VERSION_BYTES + 6 + ENTRY_BYTES + 3
        );
    }

    #[test]
    fn walks_go_both_ways() {
        let memtable = memtable();
        let keys = |keyspace, direction| {
            let mut walk = memtable.walk(keyspace, ALL, direction, 1000);
            std::iter::from_fn(|| walk.next()).map(|(key, _)| key[0]).collect::<Vec<_>>()
        };
        assert_eq!(keys(KEYSPACE, Direction::Forward), (0..200).collect::<Vec<_>>());
        assert_eq!(keys(KEYSPACE, Direction::Backward), (0..200).rev().collect::<Vec<_>>());
        assert!(keys(KeyspaceId(9), Direction::Forward).is_empty());
    }

    #[test]
    fn large_keyspaces_are_parts_of_their_own() {
        let memtable = Memtable::default();
        for (keyspace, keys) in [(1, 3), (2, 4), (3, PART_KEYS_MIN), (4, PART_KEYS_MIN), (5, 1), (6, 2)] {
            for key in 0..keys as u32 {
                memtable.put(KeyspaceId(keyspace), &key.to_be_bytes(), 10, Some(b"value"), Views::from(0));
            }
        }
        let lengths: Vec<_> = memtable.parts(Keep::Newest).into_iter().map(Iterator::count).collect();
        assert_eq!(lengths, [7, PART_KEYS_MIN, PART_KEYS_MIN, 3]);
        let keys: Vec<_> = memtable.parts(Keep::Newest).into_iter().flatten().map(|entry| entry.key).collect();
        assert!(keys.is_sorted_by(|one, next| one.user_key < next.user_key));
    }

    #[test]
    fn it_is_freed_a_few_keys_at_a_time_and_a_walk_says_so() {
        let memtable = memtable();
        for key in 0..3 * KEYS_AT_ONCE as u32 {
            memtable.put(KeyspaceId(9), &key.to_be_bytes(), 10, Some(b"value"), Views::from(0));
        }
        let mut walk = memtable.walk(KEYSPACE, ALL, Direction::Forward, 1000);
        assert_eq!(memtable.keys(), 200 + 3 * KEYS_AT_ONCE as u64);
        let mut steps = Vec::new();
        memtable.free(|keys| steps.push(keys));
        assert_eq!(steps.iter().sum::<u64>(), 200 + 3 * KEYS_AT_ONCE as u64);
        assert!(steps.iter().all(|keys| *keys <= KEYS_AT_ONCE as u64));
        assert!(walk.next().is_none() && walk.is_gone());
    }

    #[test]
    fn a_flush_writes_versions_newest_first() {
        let memtable = memtable();
        let of_six = |keep| {
            let six = |entry: &InternalValue| entry.key.user_key[4] == 6;
            memtable.parts(keep).into_iter().flatten().filter(six).map(|entry| entry.key.seqno).collect::<Vec<_>>()
        };
        assert_eq!(of_six(Keep::AllVersions), [501, 16]);
        assert_eq!(of_six(Keep::Newest), [501]);
    }
}
