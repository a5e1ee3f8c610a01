//! Weak references to the decoded leaves of a list's blocks, found without searching a cache.
//!
//! A walk looks up a leaf at each step, and a cache lookup touches two distant places in memory. Blocks of a list stand
//! side by side, and their hints do too. A hint does not keep a leaf in the cache: which leaves are kept, and for how
//! long, is up to the cache. Only the allocation of a leaf that left its cache stays until another leaf takes its hint.

use bunko_store::KeyspaceId;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

/// The decoded leaf of one block for one keyspace.
type Hint = Mutex<Option<(KeyspaceId, Weak<dyn Any + Send + Sync>)>>;

/// Size of a hint in bytes.
pub(crate) const HINT_BYTES: usize = size_of::<Hint>();

/// One hint for each block of a list.
#[derive(Default)]
pub(crate) struct Hints(OnceLock<Box<[Hint]>>);

impl Hints {
    /// The decoded leaf of a block, if it is still in memory.
    pub fn get<T: Any + Send + Sync>(&self, block: usize, keyspace: KeyspaceId) -> Option<Arc<T>> {
        let found = match &*self.0.get()?[block].lock() {
            Some((of, made)) if *of == keyspace => made.upgrade()?,
            _ => return None,
        };
        found.downcast().ok()
    }

    /// Remembers the decoded leaf of a block; `count` is the number of blocks in the list. If several keyspaces share a
    /// block, the first keeps the hint while its leaf is in memory.
    pub fn set<T: Any + Send + Sync>(&self, (block, count): (usize, usize), keyspace: KeyspaceId, made: &Arc<T>) {
        let hints = self.0.get_or_init(|| {
            let _uncounted = bunko_heap::Uncounted::begin();
            std::iter::repeat_with(Hint::default).take(count).collect()
        });
        let mut hint = hints[block].lock();
        if hint.as_ref().is_none_or(|(of, made)| *of == keyspace || made.strong_count() == 0) {
            let made: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(made);
            let _uncounted = bunko_heap::Uncounted::begin();
            *hint = Some((keyspace, Arc::downgrade(&made)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: KeyspaceId = KeyspaceId(1);
    const OTHER: KeyspaceId = KeyspaceId(2);

    #[test]
    fn cached_blocks_are_found_by_block_and_keyspace() {
        let hints = Hints::default();
        assert_eq!(hints.get::<u32>(1, ONE), None);
        let (made, of_other) = (Arc::new(7_u32), Arc::new("a leaf of another kind".to_owned()));
        hints.set((1, 3), ONE, &made);
        assert_eq!(hints.get(1, ONE), Some(Arc::clone(&made)));
        assert_eq!(hints.get::<u32>(0, ONE), None);
        assert_eq!(hints.get::<String>(1, OTHER), None);
        hints.set((1, 3), OTHER, &of_other);
        assert_eq!(hints.get::<String>(1, OTHER), None, "the first has the place while it is there");
        drop(made);
        assert_eq!(hints.get::<u32>(1, ONE), None, "a hint keeps nothing");
        hints.set((1, 3), OTHER, &of_other);
        assert_eq!(hints.get(1, OTHER), Some(of_other));
        assert_eq!(hints.get::<u32>(1, OTHER), None, "a hint of another kind");
    }
}
