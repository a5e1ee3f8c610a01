//! Memtables and a tree walked together: of equal keys the newest source's counts.

use bunko_store::Direction;
use bunko_versions::Walk;
use std::cmp::Ordering;
use std::iter::Peekable;

/// Walks over memtables, the newest first.
pub(crate) struct Memory<K: Ord + Clone, V: Clone> {
    walks: Vec<Peekable<Walk<K, V>>>,
    direction: Direction,
}

/// Whose entry comes next.
pub(crate) enum Turn<K, V> {
    /// A memtable's, which hides the tree's next one or does not; no value where it was deleted.
    Memory(K, Option<V>, Tree),
    /// The tree's.
    Tree,
    /// There is none.
    End,
}

/// What becomes of the tree's next entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    Hidden,
    Kept,
}

/// A walk's direction in the terms of the memtable's map.
pub(crate) fn in_memory(direction: Direction) -> bunko_versions::Direction {
    match direction {
        Direction::Forward => bunko_versions::Direction::Forward,
        Direction::Backward => bunko_versions::Direction::Backward,
    }
}

impl<K: Ord + Clone, V: Clone> Memory<K, V> {
    pub fn new(walks: impl Iterator<Item = Walk<K, V>>, direction: Direction) -> Self {
        Self { walks: walks.map(Iterator::peekable).collect(), direction }
    }

    /// Takes the next entry, which `tree` compares to the tree's next one, if that has any.
    pub fn turn(&mut self, tree: Option<impl Fn(&K) -> Ordering>) -> Turn<K, V> {
        self.walks.retain_mut(|walk| walk.peek().is_some());
        let first = self.first();
        let (Some(first), Some(tree)) = (&first, &tree) else {
            return match (first, tree) {
                (Some(key), None) => self.take(key, Tree::Kept),
                (None, Some(_)) => Turn::Tree,
                _ => Turn::End,
            };
        };
        let order = match self.direction {
            Direction::Forward => tree(first),
            Direction::Backward => tree(first).reverse(),
        };
        match order {
            Ordering::Less => self.take(first.clone(), Tree::Kept),
            Ordering::Equal => self.take(first.clone(), Tree::Hidden),
            Ordering::Greater => Turn::Tree,
        }
    }

    /// The key that comes next in any memtable.
    fn first(&mut self) -> Option<K> {
        let keys = self.walks.iter_mut().filter_map(|walk| walk.peek().map(|(key, _)| key));
        match self.direction {
            Direction::Forward => keys.min(),
            Direction::Backward => keys.max(),
        }
        .cloned()
    }

    fn take(&mut self, key: K, tree: Tree) -> Turn<K, V> {
        let mut newest = None;
        for walk in &mut self.walks {
            if let Some((_, value)) = walk.next_if(|(own, _)| *own == key) {
                newest.get_or_insert(value);
            }
        }
        Turn::Memory(key, newest.flatten(), tree)
    }
}
