//! Deletes the data of a directory whose server begins anew, because it joins a set that others have begun.
//!
//! ```text
//! the order is durable ──► lock the directory ──► delete the data ──► rename the order to what it becomes
//! ```
//! A crash in between leaves the order, and the next start goes on.

use crate::data_directory::lock;
use crate::{Result, files};
use std::path::Path;

/// A store's files and directories that are deleted.
const FILES: [&str; 2] = ["manifest.bson", "vote"];
const DIRECTORIES: [&str; 6] = ["log", "trees", "extents", "mmap", "image", "sync"];

/// Deletes the data in a directory that has the file `order`, and then renames this file to `outcome`. Without the file,
/// nothing is done. Call it before the directory is opened.
///
/// # Errors
/// Errors of the files; [`crate::StorageError::Locked`] if another process has the directory open.
pub fn begin_again(directory: &Path, order: &str, outcome: &str) -> Result<()> {
    let order = directory.join(order);
    if files::find(&order)?.is_none() {
        return Ok(());
    }
    let lock = lock(directory)?;
    for name in FILES {
        files::remove_if_present(&directory.join(name))?;
    }
    for name in DIRECTORIES {
        files::remove_directory(&directory.join(name))?;
    }
    // The data must be gone before the order is.
    files::sync_directory(directory)?;
    files::rename(&order, &directory.join(outcome))?;
    files::sync_directory(directory)?;
    drop(lock);
    Ok(())
}
