//! Directories that are removed with the test, and copies of directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// How often an operation is repeated if it fails because files come and go, and the pause before each repetition.
const TRIES_MAX: usize = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// A temporary directory.
pub struct Directory {
    path: PathBuf,
}

impl Default for Directory {
    fn default() -> Self {
        let made = tempfile::Builder::new().prefix("conformance-").tempdir().expect("temporary directory");
        Self { path: made.keep() }
    }
}

impl Directory {
    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A copy of a data directory at one instant: nothing in the directory changed during the copy.
    ///
    /// # Panics
    /// If the directory never stops changing.
    pub fn copy_of(from: &Path) -> Self {
        for _ in 0..TRIES_MAX {
            let copy = Self::default();
            let before = states(from);
            // A file may disappear during the copy.
            if copy.fill(from) && before == states(from) {
                return copy;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{} never stands still", from.display());
    }

    /// Copies everything from a directory; returns whether that worked.
    pub fn fill(&self, from: &Path) -> bool {
        let mut command = Command::new("cp");
        command.args(["-a", "--sparse=auto"]).arg(from.join(".")).arg(&self.path);
        command.output().expect("cp runs").status.success()
    }
}

impl Drop for Directory {
    /// A store that was dropped without being closed may still make a file, which makes the removal fail.
    fn drop(&mut self) {
        for _ in 0..TRIES_MAX {
            if std::fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Length and time of the last change of everything below a directory, by path.
fn states(directory: &Path) -> BTreeMap<PathBuf, Option<(u64, SystemTime)>> {
    let mut found = BTreeMap::new();
    for path in entries(directory) {
        let metadata = std::fs::symlink_metadata(&path).ok();
        if metadata.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            found.extend(states(&path));
        }
        let state = metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?)));
        found.insert(path, state);
    }
    found
}

/// Paths of a directory's entries, sorted.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
