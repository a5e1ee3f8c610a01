//! Makes directories whose names survive a power cut.

use crate::{Result, StorageError};
use std::fs::File;
use std::path::Path;

/// Makes a directory and its missing parents. On return the names of all of them are on disk.
///
/// # Errors
/// [`StorageError::Io`] with the directory that cannot be made.
pub fn make_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let io = |error| StorageError::io(path, error);
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return std::fs::create_dir(path).map_err(io),
    };
    make_directory(parent)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => {}
        outcome => outcome.map_err(io)?,
    }
    // A new directory's name is in its parent.
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(io)
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
        std::fs::write(path.join("file"), b"").expect("written");
        assert!(matches!(make_directory(&path.join("file/d")), Err(StorageError::Io { .. })));
    }
}
