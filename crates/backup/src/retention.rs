//! Removes old backups.
//!
//! The manifest goes first, then the archive, then the files that no other manifest names. A crash in between leaves files
//! without a manifest, which the next removal finds.
//!
//! **Invariant:** nothing is removed while a manifest cannot be read.

use crate::manifest::Manifest;
use crate::target::{FILES, Target, archive_of, file_of, manifest_of, remove_keys};
use crate::{Result, Tell};
use std::collections::{BTreeMap, BTreeSet};

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
    let objects = target.objects();
    for manifest in manifests.iter().filter(|manifest| !kept.contains(manifest.id.as_str())) {
        objects.remove(&manifest_of(&manifest.id))?;
        tell(&format!("removed backup {}", manifest.id));
    }
    for id in target.ids_with_archive()?.iter().filter(|id| !kept.contains(id.as_str())) {
        for name in objects.list(&archive_of(id))?.into_keys() {
            objects.remove(&name)?;
        }
    }
    let kept_files = manifests.iter().filter(|manifest| kept.contains(manifest.id.as_str()));
    let named: BTreeSet<String> = kept_files.flat_map(|manifest| &manifest.files).map(file_of).collect();
    for name in objects.list(FILES)?.into_keys().filter(|name| !named.contains(name)) {
        objects.remove(&name)?;
    }
    objects.prune()?;
    remove_keys(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;
    use crate::place::Place;
    use std::path::PathBuf;

    fn backup(target: &Target, id: &str, made_ms: u64, files: &[(&str, &str)]) {
        let made = Manifest { made_ms, ..manifest(id, files) };
        for (name, from) in files {
            target.objects().put(&format!("files/{from}/{name}"), b"12345").expect("written");
        }
        target.objects().put(&manifest_of(id), made.text().as_bytes()).expect("written");
    }

    fn path(target: &Target, name: &str) -> PathBuf {
        target.path(name).expect("a file")
    }

    fn ids(target: &Target) -> Vec<String> {
        target.manifests().expect("readable").into_iter().map(|manifest| manifest.id).collect()
    }

    #[test]
    fn files_of_removed_backups_stay_as_long_as_another_needs_them() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let target = Target::open(&Place::directory(directory.path())).expect("opens");
        backup(&target, "a", 1, &[("log/0", "a"), ("log/1", "a"), ("manifest.bson", "a")]);
        backup(&target, "b", 2, &[("log/1", "a"), ("manifest.bson", "b")]);
        std::fs::create_dir_all(path(&target, "archive/a")).expect("made");
        std::fs::create_dir_all(path(&target, "files/unfinished/log")).expect("made");
        remove_old(&target, &Keep::default(), &|_| ()).expect("removed");
        assert_eq!(ids(&target), ["a", "b"]);
        assert!(!path(&target, "files/unfinished").exists());
        remove_old(&target, &Keep { last: Some(1), daily: None }, &|_| ()).expect("removed");
        assert_eq!(ids(&target), ["b"]);
        assert!(path(&target, "files/a/log/1").exists(), "the backup b needs it");
        assert!(!path(&target, "files/a/log/0").exists());
        assert!(!path(&target, "archive/a").exists());
    }

    #[test]
    fn nothing_is_removed_while_a_manifest_is_damaged() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let target = Target::open(&Place::directory(directory.path())).expect("opens");
        backup(&target, "a", 1, &[("manifest.bson", "a")]);
        backup(&target, "b", 2, &[("manifest.bson", "b")]);
        std::fs::write(path(&target, "backups/a.json"), "damaged").expect("written");
        assert!(remove_old(&target, &Keep { last: Some(1), daily: None }, &|_| ()).is_err());
        assert!(path(&target, "files/a/manifest.bson").exists());
    }

    #[test]
    fn a_removal_does_not_follow_links() {
        let [directory, other] = [(); 2].map(|()| tempfile::tempdir().expect("temporary directory"));
        let target = Target::open(&Place::directory(directory.path())).expect("opens");
        let letter = other.path().join("letter.txt");
        std::fs::write(&letter, "dear").expect("written");
        backup(&target, "a", 1, &[("manifest.bson", "a")]);
        std::os::unix::fs::symlink(other.path(), path(&target, "files/a/link")).expect("linked");
        std::os::unix::fs::symlink(other.path(), path(&target, "files/b")).expect("linked");
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
