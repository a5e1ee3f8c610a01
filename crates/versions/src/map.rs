//! An ordered map of keys with their versions.

use crate::{Forgotten, Rest, Superseded, Version, Views};
use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Bound, RangeBounds};

/// An ordered map of versions behind one lock, which is held only during a search.
#[derive(Debug)]
pub struct VersionedMap<K, V> {
    entries: RwLock<BTreeMap<K, Version<V>>>,
}

impl<K, V> Default for VersionedMap<K, V> {
    fn default() -> Self {
        Self { entries: RwLock::default() }
    }
}

/// The result of a put, from which callers count bytes exactly.
#[derive(Debug)]
#[must_use]
pub struct Put<V> {
    /// The map's knowledge of the key before the put.
    pub before: Before,
    /// Versions that were dropped; the new version took their place. `None` if one more version is kept.
    pub forgotten: Option<Forgotten<V>>,
}

/// A map's knowledge of a key before a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing at all.
    Nothing,
    /// One value.
    Value,
    /// Several versions, or a deletion.
    Waiting,
}

/// A map's knowledge of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<V> {
    /// The key's value.
    Value(V),
    /// The key was deleted.
    Deleted,
}

impl<K: Ord, V> VersionedMap<K, V> {
    /// Puts a value, or a deletion for `None`. Versions that no view sees are dropped, so that the new one can take
    /// their place.
    pub fn put(&self, key: K, lsn: u64, value: Option<V>, views: Views<'_>) -> Put<V> {
        let version = Version::new(lsn, value);
        match self.entries.write().entry(key) {
            Entry::Occupied(mut newest) => {
                let newest = newest.get_mut();
                let before = if newest.is_waiting() { Before::Waiting } else { Before::Value };
                match newest.supersede(version, views) {
                    Superseded::Kept => Put { before, forgotten: None },
                    Superseded::Forgot(forgotten) => Put { before, forgotten: Some(forgotten) },
                }
            }
            Entry::Vacant(place) => {
                place.insert(version);
                Put { before: Before::Nothing, forgotten: None }
            }
        }
    }

    /// The newest version of a key below `before`; `None` if this map has none.
    pub fn get(&self, key: &K, before: u64) -> Option<Known<V>>
    where
        V: Clone,
    {
        Some(match self.entries.read().get(key)?.seen(before)?.value() {
            Some(value) => Known::Value(value.clone()),
            None => Known::Deleted,
        })
    }

    /// Drops the versions of a key that no view from `oldest_view` on sees. A deleted key is removed, so this must not
    /// be used for a map that hides another one beneath it. `None` if the map does not have the key.
    pub fn forget(&self, key: &K, oldest_view: u64) -> Option<(Option<Forgotten<V>>, Rest)> {
        let mut entries = self.entries.write();
        let (forgotten, rest) = entries.get_mut(key)?.forget(oldest_view);
        if rest == Rest::Nothing {
            entries.remove(key);
        }
        Some((forgotten, rest))
    }

    /// Removes the first `count` keys, or fewer if there are not as many, with all versions, even if views see them. A
    /// large map is freed this way, a few keys at a time. Returns how many keys were removed.
    pub fn remove_first(&self, count: usize) -> usize {
        let removed: Vec<_> = {
            let mut entries = self.entries.write();
            std::iter::from_fn(|| entries.pop_first()).take(count).collect()
        };
        removed.len()
    }

    /// Frees a map without other owners, `count` keys at a time, and calls `freed` with the number of keys freed.
    /// Cheaper than [`Self::remove_first`], because the tree need not be rebalanced meanwhile.
    pub fn free(self, count: usize, mut freed: impl FnMut(usize)) {
        let mut entries = self.entries.into_inner().into_iter();
        loop {
            match entries.by_ref().take(count).count() {
                0 => return,
                keys => freed(keys),
            }
        }
    }

    /// Visits every key with its newest version, in order of keys. Writers wait meanwhile.
    pub fn for_each(&self, mut visit: impl FnMut(&K, &Version<V>)) {
        for (key, newest) in self.entries.read().iter() {
            visit(key, newest);
        }
    }

    /// Visits up to `count` keys after `last`, or from the first key on, with their newest versions, in order of keys.
    /// Returns the last key visited, `None` if there was none. Writers wait only during one call.
    pub fn visit_next(&self, last: Option<&K>, count: usize, mut visit: impl FnMut(&K, &Version<V>)) -> Option<K>
    where
        K: Clone,
    {
        self.visit_range((last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded), count, &mut visit)
    }

    /// As [`Self::visit_next`], within a range. The range must begin before it ends.
    pub fn visit_range(
        &self,
        range: (Bound<&K>, Bound<&K>),
        count: usize,
        mut visit: impl FnMut(&K, &Version<V>),
    ) -> Option<K>
    where
        K: Clone,
    {
        let entries = self.entries.read();
        let mut shown = None;
        for (key, newest) in entries.range(range).take(count) {
            visit(key, newest);
            shown = Some(key);
        }
        shown.cloned()
    }

    /// Whether the map has a key in this range; deleted keys count.
    pub fn has_any(&self, range: impl RangeBounds<K>) -> bool {
        self.entries.read().range(range).next().is_some()
    }

    /// Number of keys, including deleted ones that were not removed yet.
    pub fn key_count(&self) -> usize {
        self.entries.read().len()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, BTreeMap<K, Version<V>>> {
        self.entries.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_see_the_newest_version_below_theirs() {
        let map = VersionedMap::default();
        let kept = [
            map.put(5, 15, Some("old"), Views::from(0)),
            map.put(6, 16, Some("six"), Views::from(0)),
            map.put(5, 500, None, Views::from(0)),
        ];
        assert_eq!(kept.map(|put| put.before), [Before::Nothing, Before::Nothing, Before::Value]);
        assert_eq!(map.get(&5, 1000), Some(Known::Deleted));
        assert_eq!(map.get(&5, 500), Some(Known::Value("old")));
        assert_eq!(map.get(&5, 15), None);
        assert_eq!(map.get(&7, 1000), None);
        assert_eq!(map.put(5, 600, Some("new"), Views::from(0)).before, Before::Waiting);
    }

    #[test]
    fn a_put_reports_the_versions_that_it_dropped() {
        let map = VersionedMap::default();
        let puts = [
            map.put("key", 16, Some(1), Views::from(0)),
            map.put("key", 501, Some(2), Views::from(0)),
            // A view before 501 is open. It sees the version of 16, not that of 501.
            map.put("key", 600, Some(3), Views::from(501)),
        ];
        assert!(puts.iter().all(|put| put.forgotten.is_none()));
        let get = |before| map.get(&"key", before);
        assert_eq!([get(601), get(502), get(501)], [3, 2, 1].map(|value| Some(Known::Value(value))));
        // The oldest view is now before 601.
        let forgotten = map.put("key", 700, Some(4), Views::from(601)).forgotten.expect("two versions");
        assert_eq!(forgotten.values().collect::<Vec<_>>(), [Some(&2), Some(&1)]);
        assert_eq!([get(701), get(700), get(600)], [Some(Known::Value(4)), Some(Known::Value(3)), None]);
    }

    #[test]
    fn a_deleted_key_goes_with_its_deletion() {
        let map = VersionedMap::default();
        let _ = [map.put("key", 1, Some(1), Views::from(0)), map.put("key", 2, None, Views::from(0))];
        let rest = |oldest_view| map.forget(&"key", oldest_view).map(|(_, rest)| rest);
        assert_eq!(rest(2), Some(Rest::Waiting { lsn: 2 }));
        assert_eq!((rest(3), map.key_count()), (Some(Rest::Nothing), 0));
        assert_eq!(rest(3), None);
    }

    #[test]
    fn a_map_is_visited_a_few_keys_at_a_time() {
        let map = VersionedMap::default();
        let _ = [
            map.put(1, 1, Some('a'), Views::from(0)),
            map.put(2, 2, None, Views::from(0)),
            map.put(3, 3, Some('c'), Views::from(0)),
        ];
        let visit = |last: Option<i32>, count| {
            let mut seen = Vec::new();
            let last = map.visit_next(last.as_ref(), count, |key, newest| seen.push((*key, newest.value().copied())));
            (last, seen)
        };
        assert_eq!(visit(None, 2), (Some(2), vec![(1, Some('a')), (2, None)]));
        assert_eq!(visit(Some(2), 2), (Some(3), vec![(3, Some('c'))]));
        assert_eq!(visit(Some(3), 2), (None, vec![]));
    }

    #[test]
    fn a_deleted_key_is_in_its_range() {
        let map = VersionedMap::default();
        let _ = [map.put(1, 1, Some(()), Views::from(0)), map.put(4, 2, None, Views::from(0))];
        assert_eq!([1..=1, 2..=3, 3..=4, 5..=9].map(|range| map.has_any(range)), [true, false, true, false]);
    }

    #[test]
    fn a_map_is_emptied_a_few_keys_at_a_time() {
        let map = VersionedMap::default();
        let _ = [
            map.put(1, 1, Some(()), Views::from(0)),
            map.put(2, 2, Some(()), Views::from(0)),
            map.put(3, 3, Some(()), Views::from(0)),
        ];
        assert_eq!((map.remove_first(1), map.get(&1, 9), map.get(&2, 9)), (1, None, Some(Known::Value(()))));
        assert_eq!((map.remove_first(3), map.remove_first(3)), (2, 0));
        let _ = [1, 2, 3].map(|key| map.put(key, 4, Some(()), Views::from(0)));
        let mut steps = Vec::new();
        map.free(2, |keys| steps.push(keys));
        assert_eq!(steps, [2, 1]);
    }
}
