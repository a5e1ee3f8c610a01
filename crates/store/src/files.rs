//! The storage's file layer: store and engines open, rename and remove their files here. Errors name the file.

use crate::{Result, StorageError};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

fn at<T>(path: &Path, outcome: io::Result<T>) -> Result<T> {
    outcome.map_err(|error| StorageError::io(path, error))
}

/// Adds `path` to an error of `outcome`; `None` if the file is missing.
fn found<T>(path: &Path, outcome: io::Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        outcome => at(path, outcome.map(Some)),
    }
}

/// Opens a file or directory for reading.
/// # Errors
/// [`StorageError::Io`] with the path, as all functions of this module; [`StorageError::OutOfDiskSpace`] if the disk is
/// full.
pub fn open(path: &Path) -> Result<File> {
    at(path, File::open(path))
}

/// As [`open`]; `None` if the file is missing.
/// # Errors
/// As [`open`].
pub fn find(path: &Path) -> Result<Option<File>> {
    found(path, File::open(path))
}

/// Opens a file for reading and writing.
/// # Errors
/// As [`open`].
pub fn open_to_write(path: &Path) -> Result<File> {
    at(path, OpenOptions::new().read(true).write(true).open(path))
}

/// As [`open_to_write`], and makes an empty file if there is none.
/// # Errors
/// As [`open`].
pub fn open_or_create(path: &Path) -> Result<File> {
    at(path, OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path))
}

/// Makes an empty file, or empties it.
/// # Errors
/// As [`open`].
pub fn create(path: &Path) -> Result<File> {
    at(path, File::create(path))
}

/// A file's contents; `None` if it is missing.
/// # Errors
/// As [`open`].
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    found(path, std::fs::read(path))
}

/// Replaces a file's contents, neither atomically nor durably.
/// # Errors
/// As [`open`].
pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
    at(path, std::fs::write(path, contents))
}

/// Renames a file. The new name survives a power cut once [`sync_directory`] has returned.
/// # Errors
/// As [`open`].
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    at(from, std::fs::rename(from, to))
}

/// Gives a file a second name in another directory of the same disk.
/// # Errors
/// As [`open`].
pub fn hard_link(from: &Path, to: &Path) -> Result<()> {
    at(from, std::fs::hard_link(from, to))
}

/// Whether a file has a second name, so that a change of its contents would be seen elsewhere.
/// # Errors
/// As [`open`].
pub fn is_shared(path: &Path, file: &File) -> Result<bool> {
    at(path, file.metadata().map(|metadata| metadata.nlink() > 1))
}

/// Gives the files of a directory second names in the directory `into`, which is made. Files that vanish meanwhile,
/// directories and hidden files are left out.
/// # Errors
/// As [`open`].
pub fn hard_link_all(from: &Path, into: &Path) -> Result<()> {
    make_directory(into)?;
    for path in entries(from)? {
        let name = path.file_name().unwrap_or_default();
        if path.is_file() && !name.as_encoded_bytes().starts_with(b".") {
            found(&path, std::fs::hard_link(&path, into.join(name)))?;
        }
    }
    Ok(())
}

/// Removes a file.
/// # Errors
/// As [`open`].
pub fn remove(path: &Path) -> Result<()> {
    at(path, std::fs::remove_file(path))
}

/// Removes a file if it is there.
/// # Errors
/// As [`open`].
pub fn remove_if_present(path: &Path) -> Result<()> {
    found(path, std::fs::remove_file(path)).map(|_| ())
}

/// Removes an empty directory, if it is there.
/// # Errors
/// As [`open`].
pub fn remove_empty_directory(path: &Path) -> Result<()> {
    found(path, std::fs::remove_dir(path)).map(|_| ())
}

/// Removes a directory and all that it contains, if it is there.
/// # Errors
/// As [`open`].
pub fn remove_directory(path: &Path) -> Result<()> {
    found(path, std::fs::remove_dir_all(path)).map(|_| ())
}

/// Paths of a directory's entries; empty if it is missing.
/// # Errors
/// As [`open`].
pub fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let Some(entries) = found(directory, std::fs::read_dir(directory))? else { return Ok(Vec::new()) };
    entries.map(|entry| at(directory, entry).map(|entry| entry.path())).collect()
}

/// Returns once the names of a directory's files are on disk. A power cut can lose a new file's name before that, or
/// bring back an old one.
/// # Errors
/// As [`open`].
pub fn sync_directory(directory: &Path) -> Result<()> {
    at(directory, File::open(directory).and_then(|directory| directory.sync_all()))
}

/// Makes a directory and its missing parents. On return the names of all of them are on disk.
///
/// # Errors
/// [`StorageError::Io`] with the directory that cannot be made.
pub fn make_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return at(path, std::fs::create_dir(path)),
    };
    make_directory(parent)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        outcome => at(path, outcome)?,
    }
    // A new directory's name is in its parent.
    sync_directory(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_made_once() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("a/b/c");
        make_directory(&path).expect("made");
        make_directory(&path).expect("there");
        assert!(path.is_dir());
        write(&path.join("file"), b"").expect("written");
        assert!(matches!(make_directory(&path.join("file/d")), Err(StorageError::Io { .. })));
    }

    #[test]
    fn a_missing_file_is_an_error_only_if_it_must_be_there() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let missing = directory.path().join("missing");
        assert!(
            matches!((find(&missing), read(&missing), entries(&missing)), (Ok(None), Ok(None), Ok(none)) if none.is_empty())
        );
        assert!(remove_if_present(&missing).is_ok() && remove_directory(&missing).is_ok());
        for outcome in
            [open(&missing).map(drop), remove(&missing), rename(&missing, &missing), sync_directory(&missing)]
        {
            assert!(matches!(outcome, Err(StorageError::Io { path, .. }) if path == missing));
        }
    }
}
