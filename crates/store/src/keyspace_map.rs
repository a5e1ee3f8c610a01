//! A map by keyspace that is cheap to copy.
//!
//! A checkpoint copies the statistics while no batch may be in flight, and each routed keyspace makes a new map that
//! readers load. So keyspaces are grouped in shards that copies share: a copy costs one reference count for each shard,
//! and a change copies the shard that it changes if another map shares it. A tree would share more and make every
//! lookup slower.

use crate::KeyspaceId;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The ids of a shard's keyspaces differ only in this many lowest bits. Ids ascend, so shards are full.
const SHARD_BITS: u32 = 8;

type Shard<V> = FxHashMap<KeyspaceId, V>;

/// A value for each keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceMap<V> {
    /// Shards with their numbers, ascending. There are few, and most maps have one: searching them is cheaper than a
    /// hash.
    shards: Vec<(u32, Arc<Shard<V>>)>,
}

fn shard_of(keyspace: KeyspaceId) -> u32 {
    keyspace.0 >> SHARD_BITS
}

impl<V> Default for KeyspaceMap<V> {
    fn default() -> Self {
        Self { shards: Vec::new() }
    }
}

impl<V> KeyspaceMap<V> {
    /// Index of a shard, or `Err` with the index at which it would be inserted.
    fn place(&self, number: u32) -> Result<usize, usize> {
        self.shards.binary_search_by_key(&number, |(number, _)| *number)
    }

    /// The value of a keyspace; `None` if it has none.
    pub fn get(&self, keyspace: KeyspaceId) -> Option<&V> {
        self.shards[self.place(shard_of(keyspace)).ok()?].1.get(&keyspace)
    }

    /// Whether a keyspace has a value.
    pub fn contains(&self, keyspace: KeyspaceId) -> bool {
        self.get(keyspace).is_some()
    }

    /// Whether no keyspace has a value.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// All keyspaces and their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (KeyspaceId, &V)> {
        self.shards.iter().flat_map(|(_, shard)| shard.iter().map(|(keyspace, value)| (*keyspace, value)))
    }

    /// Number of shards that two maps share.
    #[cfg(test)]
    fn shared(&self, other: &Self) -> usize {
        let is_shared = |(number, shard): &&(u32, Arc<Shard<V>>)| {
            other.place(*number).is_ok_and(|place| Arc::ptr_eq(shard, &other.shards[place].1))
        };
        self.shards.iter().filter(is_shared).count()
    }
}

impl<V: Clone> KeyspaceMap<V> {
    /// The value of a keyspace, for changing it; `None` if it has none.
    pub fn get_mut(&mut self, keyspace: KeyspaceId) -> Option<&mut V> {
        let place = self.place(shard_of(keyspace)).ok()?;
        let shard = &mut self.shards[place].1;
        if Arc::get_mut(shard).is_none() && !shard.contains_key(&keyspace) {
            return None;
        }
        Arc::make_mut(shard).get_mut(&keyspace)
    }

    /// The value of a keyspace, for changing it; the default if it has none.
    pub fn get_or_default(&mut self, keyspace: KeyspaceId) -> &mut V
    where
        V: Default,
    {
        self.shard_mut(keyspace).entry(keyspace).or_default()
    }

    /// Sets the value of a keyspace.
    pub fn insert(&mut self, keyspace: KeyspaceId, value: V) {
        self.shard_mut(keyspace).insert(keyspace, value);
    }

    /// The shard of a keyspace, for changing it; created if it is missing, and copied if another map shares it.
    fn shard_mut(&mut self, keyspace: KeyspaceId) -> &mut Shard<V> {
        let number = shard_of(keyspace);
        let place = self.place(number).unwrap_or_else(|place| {
            self.shards.insert(place, (number, Arc::default()));
            place
        });
        Arc::make_mut(&mut self.shards[place].1)
    }

    /// Removes a keyspace.
    pub fn remove(&mut self, keyspace: KeyspaceId) {
        let Ok(place) = self.place(shard_of(keyspace)) else { return };
        let shard = &mut self.shards[place].1;
        if !shard.contains_key(&keyspace) {
            return;
        }
        let shard = Arc::make_mut(shard);
        shard.remove(&keyspace);
        if shard.is_empty() {
            self.shards.remove(place);
        }
    }

    /// Removes the keyspaces for which `is_kept` is false.
    pub fn retain(&mut self, is_kept: impl Fn(KeyspaceId, &V) -> bool) {
        self.shards.retain_mut(|(_, shard)| {
            if shard.iter().any(|(keyspace, value)| !is_kept(*keyspace, value)) {
                Arc::make_mut(shard).retain(|keyspace, value| is_kept(*keyspace, value));
            }
            !shard.is_empty()
        });
    }
}

impl<V: Clone> FromIterator<(KeyspaceId, V)> for KeyspaceMap<V> {
    fn from_iter<I: IntoIterator<Item = (KeyspaceId, V)>>(known: I) -> Self {
        let mut map = Self::default();
        for (keyspace, value) in known {
            map.insert(keyspace, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(end: u32) -> KeyspaceMap<u32> {
        (0..end).map(|number| (KeyspaceId(number), number)).collect()
    }

    #[test]
    fn a_copy_stays_as_it_was_and_a_change_copies_one_shard() {
        let mut map = counted(10_000);
        let copy = map.clone();
        assert_eq!(map.shared(&copy), 40);
        *map.get_or_default(KeyspaceId(777)) += 1;
        *map.get_mut(KeyspaceId(778)).expect("there") += 1;
        map.remove(KeyspaceId(779));
        map.insert(KeyspaceId(780), 1);
        assert_eq!(map.shared(&copy), 39);
        assert_eq!(copy, counted(10_000));
        assert_eq!(
            [777, 778, 779, 780].map(|id| map.get(KeyspaceId(id)).copied()),
            [Some(778), Some(779), None, Some(1)]
        );
    }

    #[test]
    fn a_change_without_effect_copies_nothing() {
        let mut map = counted(1000);
        let copy = map.clone();
        assert!(map.get_mut(KeyspaceId(1001)).is_none() && !map.contains(KeyspaceId(1001)));
        map.remove(KeyspaceId(1001));
        map.retain(|_, _| true);
        assert_eq!(map.shared(&copy), 4);
    }

    #[test]
    fn shards_that_are_empty_go() {
        let mut map = counted(1000);
        map.retain(|keyspace, _| keyspace.0 >= 300);
        assert_eq!((map.iter().count(), map.shards.len()), (700, 3));
        (300..1000).for_each(|number| map.remove(KeyspaceId(number)));
        assert!(map.is_empty());
    }
}
