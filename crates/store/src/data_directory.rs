//! One process per data directory.

use crate::{Result, StorageError};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A data directory that this process alone has open; released when dropped.
pub(crate) struct DataDirectory {
    pub path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Creates the directory where it is missing and locks it.
    pub fn open(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(path).map_err(|error| StorageError::io(path, error))?;
        let lock_path = path.join("bunko.lock");
        let io = |error| StorageError::io(&lock_path, error);
        let mut lock =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&lock_path).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StorageError::Locked { path: lock_path }),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        lock.set_len(0).map_err(io)?;
        writeln!(lock, "{}", std::process::id()).map_err(io)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }
}
