//! What was made of the blocks of a list, found without searching a cache.
//!
//! A cache of leaves is asked for one at each step of a walk, and where the steps are far apart that is two places in memory that
//! are nowhere near. The blocks of a list stand side by side, and so do its hints. A hint keeps nothing in memory but the beginning of a leaf that has
//! left its cache, until another leaf takes its place: what is kept, and for how long, is up to the cache.

use bunko_store::KeyspaceId;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

/// What one block was made into for one keyspace.
type Hint = Mutex<Option<(KeyspaceId, Weak<dyn Any + Send + Sync>)>>;

/// What a hint takes in memory, in bytes.
pub(crate) const HINT_BYTES: usize = size_of::<Hint>();

/// A hint for each block of a list.
#[derive(Default)]
pub(crate) struct Hints(OnceLock<Box<[Hint]>>);

impl Hints {
    /// What a block was made into, if that is still in memory.
    pub fn get<T: Any + Send + Sync>(&self, block: usize, keyspace: KeyspaceId) -> Option<Arc<T>> {
        let found = match &*self.0.get()?[block].lock() {
            Some((of, made)) if *of == keyspace => made.upgrade()?,
            _ => return None,
        };
        found.downcast().ok()
    }

    /// Remembers what a block, one of so many, was made into. Of several keyspaces that share it, the first.
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
    fn what_is_in_memory_is_found_by_block_and_keyspace() {
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
