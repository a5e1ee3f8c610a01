//! What waits to be forgotten, in the order in which it can be.

use crate::index::IndexKey;
use bunko_store::{KeyspaceId, RecordId};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Below that much room the queue does not shrink.
const ROOM_MIN: usize = 1024;

/// A record or key with something to forget once no view is older than `lsn`; where it has many versions half of them.
pub(crate) struct Waiting {
    pub lsn: u64,
    pub keyspace: KeyspaceId,
    pub entry: Entry,
}

/// What has versions.
pub(crate) enum Entry {
    Record(RecordId),
    Key(IndexKey),
}

/// Every record and key that waits, once, however many versions it has: one that is written again and again while
/// views are open is looked at whenever half of what it keeps for them can go, not once for each version.
#[derive(Default)]
pub(crate) struct Garbage(Mutex<BinaryHeap<Waiting>>);

impl Garbage {
    pub fn push(&self, waiting: Waiting) {
        self.0.lock().push(waiting);
    }

    /// One that no view holds any more.
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
    /// The smallest LSN comes first out of a heap.
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
    fn what_can_go_first_comes_first() {
        let garbage = Garbage::default();
        for lsn in (1..1000).rev() {
            garbage.push(Waiting { lsn, keyspace: KeyspaceId(1), entry: Entry::Record(RecordId(lsn)) });
        }
        let popped: Vec<u64> = std::iter::from_fn(|| garbage.pop(500)).map(|waiting| waiting.lsn).collect();
        assert_eq!((popped, garbage.len()), ((1..500).collect(), 500));
    }
}
