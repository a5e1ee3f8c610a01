//! Walks over a map while other threads write to it.

use crate::VersionedMap;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::{Arc, Weak};

/// Keys that a walk examines under one lock: few at first, because many walks end with their first entry.
const ENTRIES_MIN: usize = 8;
const ENTRIES_MAX: usize = 64;

/// The direction of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest key.
    Forward,
    /// From the largest key.
    Backward,
}

/// How a walk refers to its map: an `Arc` keeps the map alive, a `Weak` does not.
pub trait Hold<M> {
    /// The map, unless it is gone.
    fn hold(&self) -> Option<Arc<M>>;
}

impl<M> Hold<M> for Arc<M> {
    fn hold(&self) -> Option<Arc<M>> {
        Some(Self::clone(self))
    }
}

impl<M> Hold<M> for Weak<M> {
    fn hold(&self) -> Option<Arc<M>> {
        self.upgrade()
    }
}

/// A walk that holds no lock between calls.
pub struct Walk<K, V, H = Arc<VersionedMap<K, V>>> {
    /// `None` once the walk has reached the end.
    map: Option<H>,
    is_gone: bool,
    range: (Bound<K>, Bound<K>),
    direction: Direction,
    before: u64,
    entries: VecDeque<(K, Option<V>)>,
    entries_next: usize,
}

impl<K: Ord + Clone, V: Clone, H: Hold<VersionedMap<K, V>>> Walk<K, V, H> {
    /// Walks over the keys and values that a view before `before` sees.
    pub fn new(map: H, range: (Bound<K>, Bound<K>), direction: Direction, before: u64) -> Self {
        let map = (!is_empty(&range)).then_some(map);
        Self { map, is_gone: false, range, direction, before, entries: VecDeque::new(), entries_next: ENTRIES_MIN }
    }

    /// Whether the walk ended early because its map was dropped.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    fn refill(&mut self) {
        let Some(map) = &self.map else { return };
        let Some(map) = map.hold() else {
            (self.map, self.is_gone) = (None, true);
            return;
        };
        let mut last = None;
        {
            let map = map.read();
            let range = (self.range.0.as_ref(), self.range.1.as_ref());
            let mut entries = map.range(range);
            for looked_at in 1.. {
                let entry = match self.direction {
                    Direction::Forward => entries.next(),
                    Direction::Backward => entries.next_back(),
                };
                let Some((key, newest)) = entry else { break };
                if let Some(version) = newest.seen(self.before) {
                    self.entries.push_back((key.clone(), version.value().cloned()));
                }
                if looked_at == self.entries_next {
                    last = Some(key.clone());
                    break;
                }
            }
        }
        self.entries_next = (2 * self.entries_next).min(ENTRIES_MAX);
        match (last, self.direction) {
            (None, _) => self.map = None,
            (Some(last), Direction::Forward) => self.range.0 = Bound::Excluded(last),
            (Some(last), Direction::Backward) => self.range.1 = Bound::Excluded(last),
        }
        if is_empty(&self.range) {
            self.map = None;
        }
    }
}

impl<K: Ord + Clone, V: Clone, H: Hold<VersionedMap<K, V>>> Iterator for Walk<K, V, H> {
    /// A key and its value, `None` for a deleted key.
    type Item = (K, Option<V>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.entries.is_empty() && self.map.is_some() {
            self.refill();
        }
        self.entries.pop_front()
    }
}

/// Whether a range is empty or reversed. `BTreeMap::range` panics on some of these.
fn is_empty<K: Ord>(range: &(Bound<K>, Bound<K>)) -> bool {
    match range {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Views;

    const ALL: (Bound<u64>, Bound<u64>) = (Bound::Unbounded, Bound::Unbounded);

    fn map() -> Arc<VersionedMap<u64, u64>> {
        let map = VersionedMap::default();
        for number in 0..200 {
            let _ = map.put(number, number + 10, Some(number), Views::from(0));
        }
        let _ = map.put(5, 500, None, Views::from(0));
        Arc::new(map)
    }

    fn keys(
        map: &Arc<VersionedMap<u64, u64>>,
        range: (Bound<u64>, Bound<u64>),
        direction: Direction,
        before: u64,
    ) -> Vec<u64> {
        Walk::new(Arc::clone(map), range, direction, before).map(|(key, _)| key).collect()
    }

    #[test]
    fn walks_go_both_ways_and_stay_within_their_range() {
        let map = map();
        assert_eq!(keys(&map, ALL, Direction::Forward, 1000), (0..200).collect::<Vec<_>>());
        assert_eq!(keys(&map, ALL, Direction::Backward, 1000), (0..200).rev().collect::<Vec<_>>());
        let part = (Bound::Excluded(3), Bound::Included(6));
        assert_eq!(keys(&map, part, Direction::Forward, 1000), [4, 5, 6]);
        assert_eq!(keys(&map, part, Direction::Backward, 1000), [6, 5, 4]);
        for (start, end) in [(9, 9), (9, 8)] {
            assert!(keys(&map, (Bound::Included(start), Bound::Excluded(end)), Direction::Forward, 1000).is_empty());
        }
    }

    #[test]
    fn keys_that_the_view_does_not_see_are_passed_over() {
        let map = map();
        assert_eq!(keys(&map, ALL, Direction::Forward, 20), (0..10).collect::<Vec<_>>());
        // Further from the start than the keys examined under one lock.
        assert_eq!(keys(&map, ALL, Direction::Backward, 20), (0..10).rev().collect::<Vec<_>>());
    }

    #[test]
    fn deletions_are_told() {
        let deleted = |before| {
            let walk = Walk::new(map(), ALL, Direction::Forward, before);
            walk.filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!((deleted(501), deleted(500)), (vec![5], vec![]));
    }

    #[test]
    fn a_walk_that_does_not_keep_its_map_says_when_that_is_gone() {
        let map = map();
        let mut walk = Walk::new(Arc::downgrade(&map), ALL, Direction::Forward, 1000);
        assert_eq!(walk.next(), Some((0, Some(0))));
        drop(map);
        assert_eq!(walk.by_ref().count(), ENTRIES_MIN - 1, "what was looked up before");
        assert!(walk.is_gone());
    }

    #[test]
    fn writes_of_others_do_not_disturb_a_walk() {
        let map = map();
        let mut walk = Walk::new(Arc::clone(&map), ALL, Direction::Forward, 1000);
        let mut seen = vec![walk.next().map(|(key, _)| key)];
        for number in 0..200 {
            let _ = map.put(number, 1000 + number, Some(0), Views::from(0));
            let _ = map.put(1000 + number, 1000 + number, Some(0), Views::from(0));
        }
        seen.extend(walk.map(|(key, _)| Some(key)));
        assert_eq!(seen, (0..200).map(Some).collect::<Vec<_>>());
    }
}
