//! Directories that go with the test, and copies of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// How often something is tried again that goes wrong where files come and go meanwhile, and after what time.
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
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A copy of a data directory at one instant: one during which nothing changed in it.
    ///
    /// # Panics
    /// Where it never stands still.
    pub fn copy_of(from: &Path) -> Self {
        for _ in 0..TRIES_MAX {
            let copy = Self::default();
            let before = states(from);
            // A file may go under the copier's hands.
            if copy.fill(from) && before == states(from) {
                return copy;
            }
            std::thread::sleep(PAUSE);
        }
        panic!("{} never stands still", from.display());
    }

    /// Copies everything in a directory; whether that worked.
    pub fn fill(&self, from: &Path) -> bool {
        let mut command = Command::new("cp");
        command.args(["-a", "--sparse=auto"]).arg(from.join(".")).arg(&self.path);
        command.output().expect("cp runs").status.success()
    }
}

impl Drop for Directory {
    /// A store that was dropped without being closed may still make a file, which stops the removal.
    fn drop(&mut self) {
        for _ in 0..TRIES_MAX {
            if std::fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Everything below a directory, by path, with length and time of the last change.
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

/// Everything in a directory, by name.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
