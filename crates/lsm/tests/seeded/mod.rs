//! Tests driven by a seed, with a store that panics at background errors.

use crate::opened;
use bunko_store::Store;
use std::path::Path;
use std::sync::Arc;

/// A pseudorandom sequence, determined by a seed.
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// True with a probability of one in `chances`.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// Opens a directory.
pub fn open(path: &Path) -> Arc<Store> {
    opened::open(path, |what, error| panic!("{what}: {error}")).expect("opens")
}

/// Closes a store, and opens its directory again.
pub fn reopen(store: Arc<Store>, path: &Path) -> Arc<Store> {
    store.close().expect("closes");
    drop(store);
    open(path)
}
