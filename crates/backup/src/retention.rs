//! Removes old backups.
//!
//! The manifest goes first, then the archive, then the files that no other manifest names. A crash in between leaves files
//! without a manifest, which the next removal finds.
//!
//! **Invariant:** nothing is removed while a manifest cannot be read.

use crate::manifest::Manifest;
use crate::target::Target;
use crate::{Result, Tell, of_storage};
use bunko_store::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The backups that are kept. A backup goes if neither rule keeps it; without rules all stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Number of the last backups to keep.
    pub last: Option<u64>,
    /// Number of days (UTC) with a backup whose last backup is kept.
    pub daily: Option<u64>,
}

impl Keep {
    fn kept<'m>(&self, manifests: &'m [Manifest]) -> BTreeSet<&'m str> {
        if *self == Self::default() {
            return manifests.iter().map(|manifest| manifest.id.as_str()).collect();
        }
        // The newest always stays.
        let last = manifests.iter().rev().take(self.last.unwrap_or(0).max(1) as usize);
        let mut kept: BTreeSet<&str> = last.map(|manifest| manifest.id.as_str()).collect();
        let days: BTreeMap<u64, &str> =
            manifests.iter().map(|manifest| (manifest.made_ms / DAY_MS, manifest.id.as_str())).collect();
        kept.extend(days.values().rev().take(self.daily.unwrap_or(0) as usize));
        kept
    }
}

/// Removes the backups that are not kept, and files that belong to none.
/// # Errors
/// `Damaged` for a manifest that cannot be read, and nothing is removed then; errors of the files.
pub(crate) fn remove_old(target: &Target, keep: &Keep, tell: Tell<'_>) -> Result<()> {
    let manifests = target.manifests()?;
    let kept = keep.kept(&manifests);
    for manifest in manifests.iter().filter(|manifest| !kept.contains(manifest.id.as_str())) {
        let path = target.manifest_of(&manifest.id);
        files::remove(&path).map_err(of_storage)?;
        files::sync_directory(path.parent().unwrap_or(Path::new("."))).map_err(of_storage)?;
        tell(&format!("removed backup {}", manifest.id));
    }
    for id in target.ids_with_archive()?.iter().filter(|id| !kept.contains(id.as_str())) {
        files::remove_directory(&target.archive_of(id)).map_err(of_storage)?;
    }
    let kept_files = manifests.iter().filter(|manifest| kept.contains(manifest.id.as_str()));
    let named: BTreeSet<PathBuf> = kept_files
        .flat_map(|manifest| &manifest.files)
        .map(|file| target.files_of(&file.from).join(&file.name))
        .collect();
    for id in target.ids_with_files()? {
        remove_unnamed(&target.files_of(&id), &named)?;
    }
    Ok(())
}

/// Removes the files below a directory that are not named, and the directory if nothing is left. Symbolic links stay and are
/// not followed, so nothing elsewhere is removed.
fn remove_unnamed(directory: &Path, named: &BTreeSet<PathBuf>) -> Result<()> {
    if directory.is_symlink() || !directory.is_dir() {
        return Ok(());
    }
    for path in files::entries(directory).map_err(of_storage)? {
        if path.is_dir() {
            remove_unnamed(&path, named)?;
        } else if !path.is_symlink() && !named.contains(&path) {
            files::remove(&path).map_err(of_storage)?;
        }
    }
    let is_empty = files::entries(directory).map_err(of_storage)?.is_empty();
    if is_empty { files::remove_directory(directory).map_err(of_storage) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;

    fn backup(target: &Target, id: &str, made_ms: u64, files: &[(&str, &str)]) {
        let made = Manifest { made_ms, ..manifest(id, files) };
        for (name, from) in files {
            let path = target.files_of(from).join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, "12345").expect("written");
        }
        target.replace(&target.manifest_of(id), made.text().as_bytes()).expect("written");
    }

    fn ids(target: &Target) -> Vec<String> {
        target.manifests().expect("readable").into_iter().map(|manifest| manifest.id).collect()
    }

    #[test]
    fn files_of_removed_backups_stay_as_long_as_another_needs_them() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let target = Target::open(directory.path()).expect("opens");
        backup(&target, "a", 1, &[("log/0", "a"), ("log/1", "a"), ("manifest.bson", "a")]);
        backup(&target, "b", 2, &[("log/1", "a"), ("manifest.bson", "b")]);
        std::fs::create_dir_all(target.archive_of("a")).expect("made");
        std::fs::create_dir_all(target.files_of("unfinished").join("log")).expect("made");
        remove_old(&target, &Keep::default(), &|_| ()).expect("removed");
        assert_eq!(ids(&target), ["a", "b"]);
        assert!(!target.files_of("unfinished").exists());
        remove_old(&target, &Keep { last: Some(1), daily: None }, &|_| ()).expect("removed");
        assert_eq!(ids(&target), ["b"]);
        assert!(target.files_of("a").join("log/1").exists(), "the backup b needs it");
        assert!(!target.files_of("a").join("log/0").exists());
        assert!(!target.archive_of("a").exists());
    }

    #[test]
    fn nothing_is_removed_while_a_manifest_is_damaged() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let target = Target::open(directory.path()).expect("opens");
        backup(&target, "a", 1, &[("manifest.bson", "a")]);
        backup(&target, "b", 2, &[("manifest.bson", "b")]);
        std::fs::write(target.manifest_of("a"), "damaged").expect("written");
        assert!(remove_old(&target, &Keep { last: Some(1), daily: None }, &|_| ()).is_err());
        assert!(target.files_of("a").join("manifest.bson").exists());
    }

    #[test]
    fn a_removal_does_not_follow_links() {
        let [directory, other] = [(); 2].map(|()| tempfile::tempdir().expect("temporary directory"));
        let target = Target::open(directory.path()).expect("opens");
        let letter = other.path().join("letter.txt");
        std::fs::write(&letter, "dear").expect("written");
        backup(&target, "a", 1, &[("manifest.bson", "a")]);
        std::os::unix::fs::symlink(other.path(), target.files_of("a").join("link")).expect("linked");
        std::os::unix::fs::symlink(other.path(), target.files_of("b")).expect("linked");
        remove_old(&target, &Keep::default(), &|_| ()).expect("removed");
        assert!(letter.exists());
    }

    #[test]
    fn the_last_backup_of_each_day_is_kept() {
        let days = [0, 0, 1, 3, 3].iter().enumerate();
        let made: Vec<_> = days
            .map(|(number, day)| Manifest {
                made_ms: day * DAY_MS + number as u64,
                ..manifest(&number.to_string(), &[])
            })
            .collect();
        let kept = |last, daily| Keep { last, daily }.kept(&made).into_iter().collect::<Vec<_>>();
        assert_eq!(kept(None, None), ["0", "1", "2", "3", "4"]);
        assert_eq!(kept(None, Some(2)), ["2", "4"]);
        assert_eq!(kept(None, Some(9)), ["1", "2", "4"]);
        assert_eq!(kept(Some(2), Some(1)), ["3", "4"]);
        assert_eq!(kept(Some(0), None), ["4"], "the newest always stays");
    }
}
