//! Opens a store with this engine, for all suites here.

use bunko_lsm::{Compression, LsmOptions};
use bunko_store::{EngineTable, StorageError, Store, StoreOptions};
use std::path::Path;
use std::sync::Arc;

/// Opens a directory; checkpoints are taken on demand. `on_background_error` is called with errors of background
/// threads.
/// # Errors
/// As [`Store::open`].
pub fn open(
    path: &Path,
    on_background_error: impl Fn(&str, &StorageError) + Send + Sync + 'static,
) -> Result<Arc<Store>, StorageError> {
    let options = StoreOptions { on_background_error: Arc::new(on_background_error), ..StoreOptions::at_rest() };
    let lsm = LsmOptions { cache_bytes: 8 << 20, compression: Compression::Lz4 };
    Store::open(path, options, EngineTable::only(bunko_lsm::kind(lsm)))
}
