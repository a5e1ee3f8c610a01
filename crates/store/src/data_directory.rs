//! One process per data directory.

use crate::manifest::Manifest;
use crate::{Result, StorageError, files, make_directory};
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Maximum number of files that a refusal names.
const NAMES_MAX: usize = 5;

/// A data directory that this process alone has open; released when dropped.
pub(crate) struct DataDirectory {
    pub path: PathBuf,
    /// The directory itself, locked. A lock file could be removed, and a second process would then lock a new file of
    /// that name.
    lock: File,
}

impl DataDirectory {
    /// Creates the directory if it is missing, and locks it.
    ///
    /// # Errors
    /// As [`check_place`].
    /// [`StorageError::ForeignDirectory`] if it holds another program's data, and [`StorageError::Corrupt`] if it has
    /// data of ours without log and manifest; nothing has been touched in these cases. [`StorageError::Locked`] if
    /// another process has the directory open.
    pub fn open(path: &Path) -> Result<Self> {
        check_place(path)?;
        if !Manifest::path(path).exists() {
            refuse_foreign(path)?;
            refuse_remains(path)?;
        }
        make_directory(path)?;
        let lock = lock(path)?;
        note_process(&path.join("bunko.lock"))?;
        Ok(Self { path: path.to_owned(), lock })
    }
}

/// Locks a directory, until the result is dropped.
/// # Errors
/// [`StorageError::Locked`].
pub(crate) fn lock(path: &Path) -> Result<File> {
    let lock = files::open(path)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StorageError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(StorageError::io(path, error)),
    }
}

/// Refuses a path whose parent is missing: a mistyped path, or a path on a disk that is not mounted, would become an
/// empty data directory.
/// # Errors
/// [`StorageError::MissingParent`].
pub fn check_place(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if path.exists() || parent.is_none_or(Path::exists) {
        return Ok(());
    }
    Err(StorageError::MissingParent { path: path.to_owned() })
}

/// Writes this process's id into a file, for people and tools that ask which process has the directory.
fn note_process(file: &Path) -> Result<()> {
    match files::write(file, format!("{}\n", std::process::id()).as_bytes()) {
        // A start must not fail on a full disk, because it is the start that makes room again.
        Err(StorageError::OutOfDiskSpace { .. }) => Ok(()),
        outcome => outcome,
    }
}

impl Drop for DataDirectory {
    /// Unlocks explicitly: closing the directory releases no lock while a child process that is just being started has
    /// it open too.
    fn drop(&mut self) {
        // If this fails, the only remedy is closing the file, which follows.
        let _ = self.lock.unlock();
    }
}

/// Refuses a directory in which MongoDB keeps its data.
/// Source: files that mongod 3.0 to 8.2 makes in its `dbpath`.
fn refuse_foreign(path: &Path) -> Result<()> {
    let is_foreign = |name: &str| {
        let is_table = Path::new(name).extension().is_some_and(|extension| extension == "wt");
        is_table || name.starts_with("WiredTiger") || name == "mongod.lock" || name == "storage.bson"
    };
    let mut found: Vec<_> = names(path)?.into_iter().filter(|name| is_foreign(name)).collect();
    if found.is_empty() {
        return Ok(());
    }
    found.sort_unstable();
    found.truncate(NAMES_MAX);
    Err(StorageError::ForeignDirectory { path: path.to_owned(), found })
}

/// Refuses a directory with an engine's data but neither a manifest nor a log: starting empty would hide the data and
/// soon overwrite it. A first start that was killed has left no such data.
fn refuse_remains(path: &Path) -> Result<()> {
    let log = path.join("log");
    let is_segment = |name: &String| Path::new(name).extension() == Some(OsStr::new("segment"));
    if names(&log)?.iter().any(is_segment) {
        return Ok(());
    }
    for room in ["trees/tables", "extents"] {
        let room = path.join(room);
        if let Some(name) = names(&room)?.first() {
            return Err(StorageError::Corrupt {
                file: Manifest::path(path),
                offset_bytes: 0,
                found: format!(
                    "is missing, as are the segments in {}, though there is data in {}; put them back, or start with \
                     an empty directory",
                    log.display(),
                    room.join(name).display()
                ),
            });
        }
    }
    Ok(())
}

/// Names of a directory's entries; empty if it is missing.
fn names(directory: &Path) -> Result<Vec<String>> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(files::entries(directory)?.iter().map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files left after a refusal, and its message.
    fn refused(files: &[&str]) -> (Vec<String>, String) {
        let directory = tempfile::tempdir().expect("temporary directory");
        for file in files {
            let path = directory.path().join(file);
            make_directory(path.parent().expect("below the directory")).expect("made");
            std::fs::write(path, b"data").expect("written");
        }
        let said = DataDirectory::open(directory.path()).err().map_or_else(String::new, |error| error.to_string());
        let mut left = names(directory.path()).expect("readable");
        left.sort_unstable();
        (left, said.replace(directory.path().to_str().expect("a name in UTF-8"), "DIRECTORY"))
    }

    #[test]
    fn a_process_that_inherited_the_lock_does_not_keep_it() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let opened = DataDirectory::open(directory.path()).expect("opens");
        // A child process has it like this between fork and exec.
        let inherited = opened.lock.try_clone().expect("duplicates");
        assert!(matches!(DataDirectory::open(directory.path()), Err(StorageError::Locked { .. })));
        drop(opened);
        assert!(DataDirectory::open(directory.path()).is_ok());
        drop(inherited);
    }

    #[test]
    fn removing_files_does_not_unlock_the_directory() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let _opened = DataDirectory::open(directory.path()).expect("opens");
        std::fs::remove_file(directory.path().join("bunko.lock")).expect("removed");
        assert!(matches!(DataDirectory::open(directory.path()), Err(StorageError::Locked { .. })));
    }

    #[test]
    fn a_directory_of_mongodb_is_refused_and_left_alone() {
        for name in ["WiredTiger", "WiredTiger.wt", "collection-0-12.wt", "mongod.lock", "storage.bson"] {
            let (left, said) = refused(&[name, "journal/WiredTigerLog.0000000001"]);
            assert!(said.contains(&format!("({name})")) && said.contains("mongodump"), "{said}");
            assert_eq!(left.len(), 2, "{left:?}");
        }
        let (_, said) = refused(&["WiredTiger", "manifest.bson", "log/000000000000.segment"]);
        assert_eq!(said, "", "it has been ours for long");
    }

    #[test]
    fn the_directory_is_made_and_those_above_it_are_not() {
        let directory = tempfile::tempdir().expect("temporary directory");
        assert!(DataDirectory::open(&directory.path().join("a")).is_ok());
        let error = DataDirectory::open(&directory.path().join("b/c")).err().expect("refused");
        assert!(matches!(&error, StorageError::MissingParent { path } if path.ends_with("b/c")), "{error}");
        assert!(!directory.path().join("b").exists());
    }

    #[test]
    fn data_without_manifest_and_log_is_refused_and_left_alone() {
        for file in ["trees/tables/0", "extents/000000000000.extent"] {
            let (left, said) = refused(&[file, "log/000000000003.recycled"]);
            assert!(said.starts_with("DIRECTORY/manifest.bson") && said.contains(file), "{said}");
            assert!(!left.contains(&"bunko.lock".to_owned()));
        }
        let (_, said) = refused(&["trees/current", "log/000000000000.tmp"]);
        assert_eq!(said, "", "a first start that was killed");
    }
}
