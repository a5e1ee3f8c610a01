//! Puts an image that has arrived in place of a directory's data, at a start.
//!
//! ```text
//! files are durable ──► order `installing` ──► for each directory: remove the old, rename the new ──► manifest ──► remove `sync` ──► remove the order
//! ```
//! A crash leaves the order, and the next start goes on: a directory that is no longer in `sync` is in its place already.
//! The vote stays: the server must not vote twice in a term.

use super::list::{DIRECTORIES, ImageList, MANIFEST};
use super::received::{self, FILES, ORDER, ReceivedImage};
use crate::data_directory::lock;
use crate::{Result, StorageError, checked_documents, files};
use bunko_bson::ValueRef;
use std::path::Path;

/// Puts an image that has arrived in place of the data, if that was ordered. Call it before the directory is opened.
///
/// # Errors
/// Errors of the files; [`StorageError::Locked`] if another process has the directory open; [`StorageError::Corrupt`] for
/// a damaged order.
pub fn finish_installing(data: &Path) -> Result<()> {
    let path = data.join(ORDER);
    let Some(order) = checked_documents::read_one(&path)? else { return Ok(()) };
    let list = order.as_ref().get("image").and_then(ValueRef::as_document).and_then(ImageList::parse);
    let found = "names no image".to_owned();
    let list = list.ok_or_else(|| StorageError::Corrupt { file: path.clone(), offset_bytes: 0, found })?;
    let lock = lock(data)?;
    let arrived = data.join(received::DIRECTORY).join(FILES);
    for name in DIRECTORIES {
        let (new, old) = (arrived.join(name), data.join(name));
        let is_listed = list.files.iter().any(|file| Path::new(&file.name).starts_with(name));
        if files::find(&new)?.is_some() {
            files::remove_directory(&old)?;
            files::rename(&new, &old)?;
        } else if !is_listed {
            files::remove_directory(&old)?;
        }
    }
    let manifest = arrived.join(MANIFEST);
    if files::find(&manifest)?.is_some() {
        files::rename(&manifest, &data.join(MANIFEST))?;
    }
    // The data must be in place before the order is gone: while the order is there, no start takes the files left in
    // `sync` for an image that is still arriving.
    files::sync_directory(data)?;
    ReceivedImage::forget(data)?;
    files::remove(&path)?;
    files::sync_directory(data)?;
    drop(lock);
    Ok(())
}
