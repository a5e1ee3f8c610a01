//! Striped locks on documents and unique keys: two keys may share a lock, but a key always has the same one.

use foldhash::quality::SeedableRandomState;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;
use std::time::Instant;

const STRIPES: usize = 4096;

/// The seed of the hash, random in each process: clients choose keys, and with a known seed could choose them all for
/// one stripe.
static SEED: OnceLock<SeedableRandomState> = OnceLock::new();

/// Gives keys the same stripes in every process, if it is called before the first stripe is asked for. A thread that a
/// test holds at a failpoint keeps its stripes locked: with a random seed, another write of the test would share one of
/// them in one process of some hundred, and would wait for ever.
#[cfg(debug_assertions)]
pub fn fix_stripes() {
    SEED.get_or_init(SeedableRandomState::fixed);
}

/// Numbers of stripes. A list of up to four, as for a record with a few unique keys, takes no allocation.
pub type StripeNumbers = SmallVec<[usize; 4]>;

/// The stripes. A thread locks all that it needs at once, in ascending order, so two threads never wait for each other.
pub struct LockTable {
    stripes: Box<[Mutex<()>]>,
}

/// Locks held; released when dropped.
#[must_use]
pub struct Locked<'t> {
    _guards: Guards<'t>,
}

/// One or two locks are by far the most common, and need no allocation.
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
        SEED.get_or_init(SeedableRandomState::random).hash_one(key) as usize % STRIPES
    }

    /// Locks several stripes, given in any order and with repeats. If another thread holds one, `wait` returns the time
    /// until which to wait for it before `wait` is called again. Stripes that are locked already stay locked meanwhile,
    /// because a large set would never come together otherwise.
    /// # Errors
    /// Errors of `wait`; no stripe stays locked then.
    pub fn lock_all<E>(
        &self,
        stripes: &mut StripeNumbers,
        wait: impl Fn() -> Result<Instant, E>,
    ) -> Result<Locked<'_>, E> {
        stripes.sort_unstable();
        stripes.dedup();
        let lock = |stripe: usize| {
            let stripe = &self.stripes[stripe];
            let mut locked = stripe.try_lock();
            loop {
                match locked {
                    Some(locked) => return Ok(locked),
                    None => locked = stripe.try_lock_until(wait()?),
                }
            }
        };
        let guards = match stripes[..] {
            [only] => Guards::One(lock(only)?),
            [first, second] => Guards::Two([lock(first)?, lock(second)?]),
            _ => Guards::Many(stripes.iter().map(|&stripe| lock(stripe)).collect::<Result<_, E>>()?),
        };
        Ok(Locked { _guards: guards })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn keys_cannot_be_chosen_for_one_stripe() {
        // A hash that multiplies by this known number maps all of these pairs to one value.
        const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
        let pairs = (0..1000_u64).map(|first| (first, 7_u64.wrapping_sub(first.wrapping_mul(MULTIPLIER))));
        let stripes: std::collections::HashSet<_> = pairs.map(LockTable::stripe).collect();
        assert!(stripes.len() > 500, "{} stripes", stripes.len());
    }

    #[test]
    fn overlapping_sets_exclude_each_other_without_deadlock() {
        let table = LockTable::default();
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let (table, inside) = (&table, &inside);
                scope.spawn(move || {
                    for round in 0..500 {
                        let mut stripes = smallvec![7, (thread * 31 + round) % STRIPES, (thread * 17) % STRIPES, 7];
                        let _locked = table.lock_all(&mut stripes, || Ok::<_, Infallible>(Instant::now())).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn a_wait_that_is_given_up_leaves_nothing_locked() {
        let table = LockTable::default();
        let for_ever = || Ok::<_, ()>(Instant::now() + Duration::from_mins(1));
        let held = table.lock_all(&mut smallvec![2], for_ever).unwrap();
        let asked = AtomicUsize::new(0);
        let twice = || if asked.fetch_add(1, Ordering::Relaxed) < 2 { Ok(Instant::now()) } else { Err("enough") };
        assert_eq!(table.lock_all(&mut smallvec![1, 2, 3], twice).err(), Some("enough"));
        drop(table.lock_all(&mut smallvec![1, 3], for_ever).unwrap());
        drop(held);
        assert!(table.lock_all(&mut smallvec![1, 2, 3], for_ever).is_ok());
    }
}
