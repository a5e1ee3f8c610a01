//! Locks on documents and unique keys, striped: two keys may share a lock, one key always has the same.

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

const STRIPES: usize = 4096;

/// The stripes. A thread takes all that it needs at once, in ascending order, so no two threads wait for each other.
pub struct LockTable {
    stripes: Box<[Mutex<()>]>,
}

/// Locks held; released when dropped.
#[must_use]
pub struct Locked<'t> {
    _guards: Guards<'t>,
}

/// One lock or two are by far the commonest, and need no allocation.
#[allow(dead_code)]
enum Guards<'t> {
    One(MutexGuard<'t, ()>),
    Two([MutexGuard<'t, ()>; 2]),
    Many(Vec<MutexGuard<'t, ()>>),
}

impl Default for LockTable {
    fn default() -> Self {
        Self { stripes: (0..STRIPES).map(|_| Mutex::new(())).collect() }
    }
}

impl LockTable {
    /// The stripe of a key.
    pub fn stripe(key: impl Hash) -> usize {
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        // The hasher's high bits are the well-mixed ones.
        (hasher.finish() >> 40) as usize % STRIPES
    }

    /// Waits for several stripes, in any order and with repeats as given.
    pub fn lock_all(&self, stripes: &mut Vec<usize>) -> Locked<'_> {
        stripes.sort_unstable();
        stripes.dedup();
        let lock = |stripe: usize| self.stripes[stripe].lock();
        let guards = match stripes[..] {
            [only] => Guards::One(lock(only)),
            [first, second] => Guards::Two([lock(first), lock(second)]),
            _ => Guards::Many(stripes.iter().map(|&stripe| lock(stripe)).collect()),
        };
        Locked { _guards: guards }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn overlapping_sets_exclude_each_other_without_deadlock() {
        let table = LockTable::default();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let (table, inside) = (&table, &inside);
                scope.spawn(move || {
                    for round in 0..500 {
                        let mut stripes = vec![7, (thread * 31 + round) % STRIPES, (thread * 17) % STRIPES, 7];
                        let _locked = table.lock_all(&mut stripes);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
