//! The directory that backups are written to.

use crate::manifest::{Manifest, later_format};
use crate::{Result, of_storage};
use bunko_host::Clock;
use bunko_store::files;
use bunko_tools::ToolError;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

const MARKER: &str = "bunko-backup.json";
const MARKER_TEXT: &str = "{\"format\":1}\n";
const LOCK: &str = "lock";
const OWNER: &str = "owner";
const BACKUPS: &str = "backups";
const FILES: &str = "files";
const ARCHIVE: &str = "archive";
/// Addresses of stores that a later version may write to.
const STORES: [&str; 4] = ["s3://", "gs://", "az://", "https://"];

/// A directory of backups.
pub(crate) struct Target {
    root: PathBuf,
    /// Held by the one process that writes.
    _lock: Option<File>,
}

impl Target {
    /// Opens the directory to write backups to, which is made if it is missing.
    /// # Errors
    /// `Usage` for a directory with other files; if another process writes to it; errors of the files.
    pub fn open(root: &Path) -> Result<Self> {
        refuse_stores(root)?;
        if !root.join(MARKER).exists() {
            let is_ours = |name: &str| name == LOCK || Path::new(name).extension().is_some_and(|end| end == "tmp");
            for path in files::entries(root).map_err(of_storage)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !is_ours(&name) {
                    let root = root.display();
                    return Err(ToolError::Usage(format!(
                        "{root}: has {name}, and is not a directory of backups: name an empty one"
                    )));
                }
            }
            if root.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
                return Err(ToolError::Usage(format!("{}: the directory above it is missing", root.display())));
            }
        }
        files::make_directory(root).map_err(of_storage)?;
        let lock = files::open_or_create(&root.join(LOCK)).map_err(of_storage)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ToolError::Failed(format!("{}: another process writes backups there", root.display())));
            }
            Err(TryLockError::Error(cause)) => return Err(ToolError::File { path: root.join(LOCK), cause }),
        }
        if root.join(MARKER).exists() {
            Self::read(root)?;
        }
        let target = Self { root: root.to_owned(), _lock: Some(lock) };
        // A kill must not leave the directories without the marker: the next process would take them for other files.
        target.replace(&root.join(MARKER), MARKER_TEXT.as_bytes())?;
        for name in [BACKUPS, FILES, ARCHIVE] {
            files::make_directory(&root.join(name)).map_err(of_storage)?;
        }
        Ok(target)
    }

    /// Opens the directory to read backups from it. Another process may write meanwhile.
    /// # Errors
    /// `Usage` if it is not a directory of backups, or of a later format.
    pub fn read(root: &Path) -> Result<Self> {
        refuse_stores(root)?;
        let marker = root.join(MARKER);
        let Some(text) = files::read(&marker).map_err(of_storage)? else {
            return Err(ToolError::Usage(format!(
                "{}: is not a directory of backups: {MARKER} is missing",
                root.display()
            )));
        };
        if text != MARKER_TEXT.as_bytes() {
            let later = serde_json::from_slice::<serde_json::Value>(&text).ok();
            if let Some(format) = later.as_ref().and_then(|later| later.get("format")?.as_u64()) {
                return Err(later_format(root, format));
            }
            let found = format!("is not {}", MARKER_TEXT.trim_end());
            return Err(ToolError::Damaged { path: marker, offset_bytes: 0, found });
        }
        Ok(Self { root: root.to_owned(), _lock: None })
    }

    /// Directory with the files that a backup copied.
    pub fn files_of(&self, id: &str) -> PathBuf {
        self.root.join(FILES).join(id)
    }

    /// Directory with the log after a backup.
    pub fn archive_of(&self, id: &str) -> PathBuf {
        self.root.join(ARCHIVE).join(id)
    }

    /// File of a backup's manifest.
    pub fn manifest_of(&self, id: &str) -> PathBuf {
        self.root.join(BACKUPS).join(format!("{id}.json"))
    }

    /// The manifests of all backups, the oldest first.
    /// # Errors
    /// `Damaged` with the file; errors of the files.
    pub fn manifests(&self) -> Result<Vec<Manifest>> {
        let mut found = Vec::new();
        for path in files::entries(&self.root.join(BACKUPS)).map_err(of_storage)? {
            if path.extension().is_some_and(|end| end == "json") {
                found.push(Manifest::read(&path)?);
            }
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// The ids of backups that have files here, finished or not.
    /// # Errors
    /// Errors of the files.
    pub fn ids_with_files(&self) -> Result<Vec<String>> {
        ids_in(&self.root.join(FILES))
    }

    /// The ids of backups that have an archive here.
    /// # Errors
    /// Errors of the files.
    pub fn ids_with_archive(&self) -> Result<Vec<String>> {
        ids_in(&self.root.join(ARCHIVE))
    }

    /// Makes the names of all directories of backups durable.
    /// # Errors
    /// Errors of the files.
    pub fn sync_names(&self) -> Result<()> {
        for name in [FILES, ARCHIVE, BACKUPS] {
            files::sync_directory(&self.root.join(name)).map_err(of_storage)?;
        }
        Ok(())
    }

    /// The name by which a server knows the reader of this target's backups. It stays the same, so that a backup that was
    /// killed is not in the way of the next one.
    /// # Errors
    /// Errors of the files.
    pub fn owner(&self, clock: &Clock) -> Result<String> {
        let path = self.root.join(OWNER);
        if let Some(owner) = files::read(&path).map_err(of_storage)? {
            return Ok(String::from_utf8_lossy(&owner).trim().to_owned());
        }
        let owner = format!("{:x}-{:x}", clock.since_1970().as_nanos(), std::process::id());
        self.replace(&path, owner.as_bytes())?;
        Ok(owner)
    }

    /// Replaces a file atomically and durably.
    /// # Errors
    /// Errors of the files; the file is as before, or has the new contents.
    pub fn replace(&self, path: &Path, contents: &[u8]) -> Result<()> {
        let temporary = path.with_extension("tmp");
        let mut file = files::create(&temporary).map_err(of_storage)?;
        let written = file.write_all(contents).and_then(|()| file.sync_all());
        written.map_err(|cause| ToolError::File { path: temporary.clone(), cause })?;
        files::rename(&temporary, path).map_err(of_storage)?;
        files::sync_directory(path.parent().unwrap_or(&self.root)).map_err(of_storage)
    }
}

fn ids_in(directory: &Path) -> Result<Vec<String>> {
    let entries = files::entries(directory).map_err(of_storage)?;
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(entries.iter().map(name).collect())
}

/// Refuses a place to which backups cannot be written yet.
/// # Errors
/// `Usage` for the address of a store of objects.
pub fn refuse_stores(root: &Path) -> Result<()> {
    let text = root.to_string_lossy();
    if STORES.iter().any(|store| text.starts_with(store)) {
        return Err(ToolError::Usage(format!("{text}: a store of objects is not supported yet: name a directory")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_empty_directory_or_one_of_backups() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let root = directory.path().join("backups");
        assert!(Target::read(&root).is_err());
        let target = Target::open(&root).expect("made");
        assert!(Target::open(&root).is_err(), "another process writes there");
        assert!(Target::read(&root).is_ok());
        drop(target);
        assert!(Target::open(&root).is_ok());
        std::fs::write(root.join(MARKER), "{\"format\":2}\n").expect("written");
        assert!(Target::open(&root).is_err() && Target::read(&root).is_err());
        let other = directory.path().join("other");
        std::fs::create_dir(&other).expect("made");
        std::fs::write(other.join("letter.txt"), "dear").expect("written");
        let refused = Target::open(&other).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("letter.txt"), "{refused}");
        assert!(!other.join(LOCK).exists());
        let refused = Target::open(Path::new("s3://bucket")).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("not supported yet"), "{refused}");
    }
}
