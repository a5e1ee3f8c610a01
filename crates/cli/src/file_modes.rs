//! Only the user that runs this program may read its files.
//!
//! The log holds documents and the keys of users' passwords; dumps, reports and audit logs show them too.

use crate::log_format::STARTUP_WARNING;
use bunko_store::StorageError;
use rustix::fs::Mode;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Permission bits of the group and of all other users.
const OF_OTHERS: u32 = 0o077;
/// Maximum number of files that a start examines: one finding is enough for a warning, and a directory may hold a
/// hundred thousand files.
const FILES_MAX: usize = 10_000;

/// Makes files, directories and sockets that the process creates from now on accessible only to its own user, as mongod
/// does.
pub fn keep_new_files_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Warns if other users of the machine may read a data directory, as earlier versions created them.
pub fn warn_of_open_files(dbpath: &Path) {
    let Some(open) = first_open(dbpath) else { return };
    tracing::warn!(
        target: "CONTROL", id = 136, ctx = "main", tags = STARTUP_WARNING, path = %open.display(),
        "Other users of this machine may read or change the data: run chmod -R go= on the data directory"
    );
}

/// A sentence about a data directory that cannot be opened.
pub fn cannot_open(dbpath: &Path, error: &StorageError) -> String {
    let denied = match error {
        StorageError::Io { path, source } if source.kind() == ErrorKind::PermissionDenied => foreign_owner(path),
        _ => None,
    };
    format!("cannot open the data directory {}: {error}{}", dbpath.display(), denied.unwrap_or_default())
}

/// The end of a sentence about a file that this process may not use: the other user to whom the file, or the nearest
/// directory above it that exists, belongs.
fn foreign_owner(path: &Path) -> Option<String> {
    let (existing, metadata) = path.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)))?;
    let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
    (owner != own)
        .then(|| format!(": {} belongs to user {owner}, and this process runs as user {own}", existing.display()))
}

/// A path of the data directory that other users may access. A directory that is closed to them protects everything in
/// it.
fn first_open(dbpath: &Path) -> Option<PathBuf> {
    let is_open = |metadata: &Metadata| metadata.permissions().mode() & OF_OTHERS != 0;
    if !fs::metadata(dbpath).is_ok_and(|metadata| is_open(&metadata)) {
        return None;
    }
    let mut directories = vec![dbpath.to_owned()];
    let mut files_left = FILES_MAX;
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).ok()?.flatten().take(files_left) {
            files_left -= 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() && is_open(&metadata) {
                return Some(entry.path());
            }
            if metadata.is_dir() && is_open(&metadata) {
                directories.push(entry.path());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode is set");
    }

    #[test]
    fn a_file_is_open_where_every_directory_above_it_is() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let log = directory.path().join("log");
        fs::create_dir(&log).expect("made");
        let file = log.join("segment");
        fs::write(&file, "data").expect("written");
        let modes = |above, below, of_file| {
            set_mode(directory.path(), above);
            set_mode(&log, below);
            set_mode(&file, of_file);
            first_open(directory.path())
        };
        assert_eq!(modes(0o755, 0o755, 0o644), Some(file.clone()));
        assert_eq!(modes(0o755, 0o755, 0o600), None);
        assert_eq!(modes(0o755, 0o700, 0o644), None);
        assert_eq!(modes(0o700, 0o755, 0o644), None);
        assert_eq!(modes(0o750, 0o750, 0o640), Some(file.clone()));
    }
}
