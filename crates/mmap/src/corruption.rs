//! The error for a damaged data file.

use bunko_store::StorageError;
use std::path::Path;

pub(crate) fn corrupt(path: &Path, offset_bytes: u64, found: impl Into<String>) -> StorageError {
    StorageError::Corrupt { file: path.to_owned(), offset_bytes, found: found.into() }
}
