//! Walks memtables and a tree together: among equal keys, the entry from the newest source wins.

use bunko_store::Direction;
use bunko_versions::Walk;
use std::cmp::Ordering;
use std::iter::Peekable;

/// Walks over memtables, newest first.
pub(crate) struct Memory<K: Ord + Clone, V: Clone> {
    walks: Vec<Peekable<Walk<K, V>>>,
    direction: Direction,
}

/// Source of the next entry.
pub(crate) enum NextEntry<K, V> {
    /// A memtable has the next entry; `Tree` says whether it hides the tree's next one. `None` as value is a deletion.
    Memory(K, Option<V>, Tree),
    /// The tree has the next entry.
    Tree,
    /// There are no more entries.
    End,
}

/// Whether the tree's next entry is hidden.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    Hidden,
    Kept,
}

/// Converts a direction for the memtables' maps.
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

    /// Takes the next entry. `tree` compares a key with the tree's next one; `None` at the tree's end.
    pub fn turn(&mut self, tree: Option<impl Fn(&K) -> Ordering>) -> NextEntry<K, V> {
        self.walks.retain_mut(|walk| walk.peek().is_some());
        let first = self.first();
        let (Some(first), Some(tree)) = (&first, &tree) else {
            return match (first, tree) {
                (Some(key), None) => self.take(key, Tree::Kept),
                (None, Some(_)) => NextEntry::Tree,
                _ => NextEntry::End,
            };
        };
        let order = match self.direction {
            Direction::Forward => tree(first),
            Direction::Backward => tree(first).reverse(),
        };
        match order {
            Ordering::Less => self.take(first.clone(), Tree::Kept),
            Ordering::Equal => self.take(first.clone(), Tree::Hidden),
            Ordering::Greater => NextEntry::Tree,
        }
    }

    /// The smallest next key of all memtables, or the largest in a backward walk; `None` at the end.
    fn first(&mut self) -> Option<K> {
        let keys = self.walks.iter_mut().filter_map(|walk| walk.peek().map(|(key, _)| key));
        match self.direction {
            Direction::Forward => keys.min(),
            Direction::Backward => keys.max(),
        }
        .cloned()
    }

    fn take(&mut self, key: K, tree: Tree) -> NextEntry<K, V> {
        let mut newest = None;
        for walk in &mut self.walks {
            if let Some((_, value)) = walk.next_if(|(own, _)| *own == key) {
                newest.get_or_insert(value);
            }
        }
        NextEntry::Memory(key, newest.flatten(), tree)
    }
}
