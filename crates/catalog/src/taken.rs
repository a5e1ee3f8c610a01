//! Checks whether a unique key of an insert is taken: in the collection, or by an earlier document of the batch.

use crate::Index;
use crate::index_keys::own_part;
use crate::write::holder;
use bunko_store::{Result, View};
use foldhash::HashSet;

/// Batches with at least this many keys are first checked as a whole: whether all their keys lie in a range without
/// keys.
const RANGE_KEYS_MIN: usize = 8;

/// The unique keys of one index.
pub(crate) struct Taken<'k> {
    /// Whether the collection has no key from the smallest to the largest of the batch, as is usual for object ids and
    /// counters. Then no key has to be looked up.
    is_vacant: bool,
    added: Added<'k>,
}

/// Keys of the batch so far.
enum Added<'k> {
    /// Each key is larger than the previous one, as with object ids and counters.
    Ascending(Vec<&'k [u8]>),
    Any(HashSet<&'k [u8]>),
}

impl<'k> Taken<'k> {
    /// Prepares the check for `index`; `keys` are all keys that the batch may add, without record ids. The caller holds
    /// the locks of these keys.
    pub fn new(view: &dyn View, index: &Index, keys: impl Iterator<Item = &'k [u8]> + Clone) -> Result<Self> {
        let count = keys.clone().count();
        let is_vacant = match (keys.clone().min(), keys.max()) {
            (Some(smallest), Some(largest)) if count >= RANGE_KEYS_MIN && !index.ends_with_record() => {
                view.is_vacant(index.keyspace, smallest, largest)?
            }
            _ => false,
        };
        Ok(Self { is_vacant, added: Added::Ascending(Vec::with_capacity(count)) })
    }

    /// Whether a stored key is taken.
    pub fn contains(&self, view: &dyn View, index: &Index, key: &[u8]) -> Result<bool> {
        let own = own_part(index, key);
        let is_added = match &self.added {
            Added::Ascending(keys) => keys.last().is_some_and(|last| own <= *last) && keys.binary_search(&own).is_ok(),
            Added::Any(keys) => keys.contains(own),
        };
        Ok(is_added || !self.is_vacant && holder(view, index, key)?.is_some())
    }

    /// Adds a key of a document in the batch, which was not taken.
    pub fn add(&mut self, key: &'k [u8]) {
        match &mut self.added {
            Added::Ascending(keys) if keys.last().is_none_or(|last| *last < key) => keys.push(key),
            Added::Ascending(keys) => {
                self.added = Added::Any(keys.drain(..).chain(std::iter::once(key)).collect());
            }
            Added::Any(keys) => {
                keys.insert(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexSpec;
    use bunko_store::{Batch, KeyspaceId, RecordId, Store, StoreOptions};
    use std::sync::Arc;

    const INDEX: KeyspaceId = KeyspaceId(1);

    /// A store with these keys in an index.
    fn store(keys: &[u8]) -> Arc<Store> {
        let engine = bunko_engines::find("memory").expect("an engine of the table");
        let table = bunko_engines::table(engine, &bunko_engines::EngineOptions::default());
        let store =
            Store::open(std::path::Path::new("touched by nobody"), StoreOptions::at_rest(), table).expect("opens");
        let mut batch = Batch::new();
        for key in keys {
            batch.put_key(INDEX, &[*key], RecordId(u64::from(*key)));
        }
        store.commit(&batch).expect("committed");
        store
    }

    /// The refused keys of a batch, and whether keys had to be looked up.
    fn refused(store: &Store, batch: &[u8]) -> (Vec<u8>, bool) {
        let keys: Vec<[u8; 1]> = batch.iter().map(|key| [*key]).collect();
        let view = store.latest();
        let index = Index::new(IndexSpec::id(), INDEX);
        let mut taken = Taken::new(view, &index, keys.iter().map(<[u8; 1]>::as_slice)).expect("readable");
        let mut refused = Vec::new();
        for key in &keys {
            if taken.contains(view, &index, key).expect("readable") {
                refused.push(key[0]);
            } else {
                taken.add(key);
            }
        }
        (refused, !taken.is_vacant)
    }

    #[test]
    fn keys_of_a_vacant_range_are_new_without_a_look() {
        let store = store(&[9, 30]);
        assert_eq!(refused(&store, &[10, 11, 12, 13, 14, 15, 16, 17]), (vec![], false));
        assert_eq!(refused(&store, &[17, 16, 10, 15, 14, 13, 12, 11]), (vec![], false));
    }

    #[test]
    fn keys_beside_others_are_looked_up() {
        let store = store(&[9, 13]);
        assert_eq!(refused(&store, &[10, 11, 12, 13, 14, 15, 16, 17]), (vec![13], true));
        assert_eq!(refused(&store, &[9, 10]), (vec![9], true));
    }

    #[test]
    fn keys_that_a_batch_has_twice_are_taken_in_any_order() {
        let store = store(&[]);
        assert_eq!(refused(&store, &[10, 11, 11, 12, 10, 13, 14, 15, 13]), (vec![11, 10, 13], false));
        assert_eq!(refused(&store, &[20, 11, 20, 12, 10, 11, 14, 20, 13]), (vec![20, 11, 20], false));
        assert_eq!(refused(&store, &[2, 1, 2]), (vec![2], true));
    }
}
