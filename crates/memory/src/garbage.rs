//! Queue of entries with versions to forget, in the order in which they can be forgotten.

use crate::key::IndexKey;
use bunko_store::{KeyspaceId, RecordId};
use bunko_versions::{Before, Put};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The queue's allocation does not shrink below this capacity.
const ROOM_MIN: usize = 1024;

/// A record or key with versions to forget once all views are newer than `lsn`. If it has many versions, half of them
/// can be forgotten then.
pub(crate) struct Waiting {
    pub lsn: u64,
    pub keyspace: KeyspaceId,
    pub entry: Entry,
}

/// A record or a key.
pub(crate) enum Entry {
    Record(RecordId),
    Key(IndexKey),
}

/// Whether a record or key begins to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    ToWait,
    Nothing,
}

impl Begins {
    pub fn from<V>(put: &Put<V>, deletes: bool) -> Self {
        match put.before {
            Before::Waiting => Self::Nothing,
            Before::Nothing if !deletes => Self::Nothing,
            Before::Nothing | Before::Value => Self::ToWait,
        }
    }
}

/// Each waiting record and key is in the queue once, however many versions it has. So an entry that is written again
/// and again while views are open is visited whenever half of its old versions can go, not once for each version.
#[derive(Default)]
pub(crate) struct Garbage(Mutex<BinaryHeap<Waiting>>);

impl Garbage {
    pub fn push(&self, waiting: Waiting) {
        self.0.lock().push(waiting);
    }

    /// Takes an entry with versions that no view holds any more; `None` if there is none.
    pub fn pop(&self, oldest_view: u64) -> Option<Waiting> {
        let mut queue = self.0.lock();
        if queue.peek()?.lsn >= oldest_view {
            return None;
        }
        let waiting = queue.pop();
        if queue.capacity() > ROOM_MIN && queue.len() * 4 < queue.capacity() {
            let room = queue.len() * 2;
            queue.shrink_to(room);
        }
        waiting
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl Ord for Waiting {
    /// Reversed, so that the heap returns the smallest LSN first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.lsn.cmp(&self.lsn)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.lsn == other.lsn
    }
}

impl Eq for Waiting {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_removable_version_comes_first() {
        let garbage = Garbage::default();
        for lsn in (1..1000).rev() {
            garbage.push(Waiting { lsn, keyspace: KeyspaceId(1), entry: Entry::Record(RecordId(lsn)) });
        }
        let popped: Vec<u64> = std::iter::from_fn(|| garbage.pop(500)).map(|waiting| waiting.lsn).collect();
        assert_eq!((popped, garbage.len()), ((1..500).collect(), 500));
    }
}
