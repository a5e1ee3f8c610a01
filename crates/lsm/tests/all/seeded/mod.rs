//! A store that panics at background errors.

use crate::opened;
use bunko_store::Store;
use std::path::Path;
use std::sync::Arc;

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
