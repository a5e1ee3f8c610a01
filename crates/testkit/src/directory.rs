//! Data directories of servers and stores under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Number of attempts to copy a directory.
const COPIES_MAX: usize = 50;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Largest size in bytes of a file that names other files.
const SMALL_BYTES: u64 = 64 * 1024;

/// All files below a directory, in order of their paths.
///
/// # Panics
/// If a directory cannot be read.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let (directories, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.extend(directories.iter().flat_map(|directory| files_below(directory)));
    files.sort();
    files
}

/// Copies a directory as a kill would leave it: the files are copied while they are still open, without a checkpoint.
///
/// A kill leaves the files of one moment, but a copy takes longer. The copy is repeated if meanwhile a file appeared or
/// vanished, or if a file that names others changed. All other files only grow.
///
/// # Panics
/// If the directory cannot be copied.
pub fn crash_copy(from: &Path) -> TempDir {
    for _ in 0..COPIES_MAX {
        let before = shape(from);
        let copy = tempfile::tempdir().expect("temporary directory");
        let mut command = Command::new("cp");
        command.args(["-a", "--sparse=always"]).arg(from.join(".")).arg(copy.path());
        // `cp` fails if a file vanishes while it runs.
        if command.status().expect("cp runs").success() && before.is_some() && before == shape(from) {
            return copy;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("the data directory does not hold still for a copy");
}

/// The names of all files, and the contents of the small ones; `None` if a file vanishes while it is read.
fn shape(directory: &Path) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let read = |path: PathBuf| {
        let is_small = path.metadata().ok()?.len() <= SMALL_BYTES;
        let content = if is_small { std::fs::read(&path).ok()? } else { Vec::new() };
        Some((path, content))
    };
    files_below(directory).into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_files() {
        let directory = tempfile::tempdir().expect("temporary directory");
        std::fs::create_dir(directory.path().join("b")).expect("made");
        for name in ["c", "a", "b/d"] {
            std::fs::write(directory.path().join(name), name).expect("written");
        }
        let copy = crash_copy(directory.path());
        let names = |root: &Path| -> Vec<PathBuf> {
            files_below(root).iter().map(|path| path.strip_prefix(root).expect("below it").to_owned()).collect()
        };
        assert_eq!(names(copy.path()), ["a", "b/d", "c"].map(PathBuf::from));
        assert_eq!(names(directory.path()), names(copy.path()));
    }
}
