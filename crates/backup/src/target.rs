//! The target that backups are written to.

use crate::manifest::{FileEntry, Manifest, later_format};
use crate::objects::{KEYS, Objects, Sealed, key_of};
use crate::place::Place;
use crate::{Result, of_storage};
use bunko_host::Clock;
use bunko_store::files;
use bunko_tools::ToolError;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

const MARKER: &str = "bunko-backup.json";
const OWNER: &str = "owner";
const BACKUPS: &str = "backups/";
/// The files that backups copied.
pub(crate) const FILES: &str = "files/";
/// The log after backups.
pub(crate) const ARCHIVE: &str = "archive/";

/// The form of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Format 1: a directory, whose archives are files of the log that grow.
    Growing,
    /// Format 2: archives are parts that are written whole.
    Parts,
    /// Format 2, and all objects of backups are encrypted.
    EncryptedParts,
}

/// A place with backups.
pub(crate) struct Target {
    objects: Box<dyn Objects>,
    form: Form,
}

impl Form {
    fn of_new(place: &Place) -> Self {
        match (place.keys(), place.is_bucket()) {
            (Some(_), _) => Self::EncryptedParts,
            (None, true) => Self::Parts,
            (None, false) => Self::Growing,
        }
    }

    fn marker(self) -> &'static str {
        match self {
            Self::Growing => "{\"format\":1}\n",
            Self::Parts => "{\"format\":2,\"encryption\":\"none\"}\n",
            Self::EncryptedParts => "{\"format\":2,\"encryption\":\"aes-256-gcm\"}\n",
        }
    }

    /// Reads the marker of a target.
    /// # Errors
    /// `Usage` for a later format; `Damaged`.
    fn read(objects: &dyn Objects, text: &[u8]) -> Result<Self> {
        let all = [Self::Growing, Self::Parts, Self::EncryptedParts];
        if let Some(form) = all.into_iter().find(|form| form.marker().as_bytes() == text) {
            return Ok(form);
        }
        let later = serde_json::from_slice::<Value>(text).ok();
        match later.as_ref().and_then(|later| later.get("format")?.as_u64()) {
            Some(format) if format > 2 => Err(later_format(&objects.shown(MARKER), format, 2)),
            _ => Err(objects.damaged(MARKER, 0, "is not the marker of a target of backups")),
        }
    }
}

impl Target {
    /// Opens the place to write backups to, which is made if it is missing.
    /// # Errors
    /// `Usage` for a directory with other files, and for keys that do not go with it; if another process writes to it; errors
    /// of the store.
    pub fn open(place: &Place) -> Result<Self> {
        let mut objects = place.objects()?;
        if objects.read(MARKER)?.is_none()
            && let Some(name) = objects.stranger()?
        {
            return Err(ToolError::Usage(format!(
                "{place}: has {name}, and is not a directory of backups: name an empty one"
            )));
        }
        objects.lock()?;
        let form = match objects.read(MARKER)? {
            Some(text) => Form::read(&*objects, &text)?,
            None => Form::of_new(place),
        };
        let target = Self::with_keys(objects, form, place)?;
        // A kill must not leave other objects without the marker: the next process would take them for another's.
        target.objects.put(MARKER, form.marker().as_bytes())?;
        for name in [BACKUPS, FILES, ARCHIVE] {
            if let Some(path) = target.objects.path(name) {
                files::make_directory(&path).map_err(of_storage)?;
            }
        }
        Ok(target)
    }

    /// Opens the place to read backups from it. Another process may write meanwhile.
    /// # Errors
    /// `Usage` if it has no backups, if they are of a later format, and for keys that do not go with them.
    pub fn read(place: &Place) -> Result<Self> {
        let objects = place.objects()?;
        let Some(text) = objects.read(MARKER)? else {
            return Err(ToolError::Usage(format!("{place}: is not a directory of backups: {MARKER} is missing")));
        };
        let form = Form::read(&*objects, &text)?;
        Self::with_keys(objects, form, place)
    }

    fn with_keys(objects: Box<dyn Objects>, form: Form, place: &Place) -> Result<Self> {
        let objects: Box<dyn Objects> = match (form, place.keys()) {
            (Form::EncryptedParts, Some(keys)) => Box::new(Sealed::new(objects, Arc::clone(keys))),
            (Form::EncryptedParts, None) => {
                let why = "the backups are encrypted: name the file of their keys with --key-file";
                return Err(ToolError::Usage(format!("{place}: {why}")));
            }
            (Form::Growing | Form::Parts, None) => objects,
            (Form::Growing | Form::Parts, Some(_)) => {
                let why = "the backups are not encrypted: name an empty directory for encrypted ones, or leave --key-file out";
                return Err(ToolError::Usage(format!("{place}: {why}")));
            }
        };
        Ok(Self { objects, form })
    }

    /// The form of the target.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Its objects, in plain text.
    pub fn objects(&self) -> &dyn Objects {
        &*self.objects
    }

    /// The manifests of all backups, the oldest first.
    /// # Errors
    /// `Damaged` with the file; errors of the store.
    pub fn manifests(&self) -> Result<Vec<Manifest>> {
        let mut found = Vec::new();
        for name in self.objects.list(BACKUPS)?.into_keys() {
            let Some(id) = name.strip_prefix(BACKUPS).and_then(|name| name.strip_suffix(".json")) else { continue };
            // Another process may have removed it meanwhile.
            let Some(bytes) = self.objects.read(&name)? else { continue };
            found.push(Manifest::parse(&self.objects.shown(&name), id, bytes)?);
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// The ids of backups that have an archive here.
    /// # Errors
    /// Errors of the store.
    pub fn ids_with_archive(&self) -> Result<BTreeSet<String>> {
        self.objects.children(ARCHIVE)
    }

    /// The ids of all backups that have objects here, finished or not.
    /// # Errors
    /// Errors of the store.
    pub fn ids(&self) -> Result<BTreeSet<String>> {
        Ok(&self.objects.children(FILES)? | &self.ids_with_archive()?)
    }

    /// The name by which a server knows the reader of this target's backups. It stays the same, so that a backup that was
    /// killed is not in the way of the next one.
    /// # Errors
    /// Errors of the store.
    pub fn owner(&self, clock: &Clock) -> Result<String> {
        if let Some(owner) = self.objects.read(OWNER)? {
            return Ok(String::from_utf8_lossy(&owner).trim().to_owned());
        }
        let owner = format!("{:x}-{:x}", clock.since_1970().as_nanos(), std::process::id());
        self.objects.put(OWNER, owner.as_bytes())?;
        Ok(owner)
    }

    /// The file of an object.
    /// # Errors
    /// `Failed` if the objects of this target are not files.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        let failed = || ToolError::Failed(format!("{} is not a file", self.objects.shown(name).display()));
        self.objects.path(name).ok_or_else(failed)
    }
}

/// The object with a backup's manifest.
pub(crate) fn manifest_of(id: &str) -> String {
    format!("{BACKUPS}{id}.json")
}

/// The object with a file of a backup.
pub(crate) fn file_of(entry: &FileEntry) -> String {
    format!("{FILES}{}/{}", entry.from, entry.name)
}

/// The beginning of the names of a backup's archive.
pub(crate) fn archive_of(id: &str) -> String {
    format!("{ARCHIVE}{id}/")
}

/// Wraps the keys of all backups anew with the first key of the file. Returns their number, and that key's fingerprint.
/// # Errors
/// `Usage` if the backups are not encrypted; `Failed` with the fingerprint of a key that the file does not have; errors of the
/// store. The same call goes on after an error.
pub fn rekey(place: &Place) -> Result<(u64, String)> {
    let Some(keys) = place.keys() else {
        return Err(ToolError::Usage("--rekey needs the file of keys: name it with --key-file".to_owned()));
    };
    // Only an existing target has keys.
    drop(Target::read(place)?);
    let mut objects = place.objects()?;
    objects.lock()?;
    Ok((Sealed::rekey(&*objects, keys)?, keys.first().to_owned()))
}

/// Removes the keys of backups of which nothing else is left.
/// # Errors
/// Errors of the store.
pub(crate) fn remove_keys(target: &Target) -> Result<()> {
    if target.form() != Form::EncryptedParts {
        return Ok(());
    }
    let mut used = target.ids()?;
    used.extend(target.manifests()?.into_iter().map(|manifest| manifest.id));
    for name in target.objects().list(KEYS)?.into_keys() {
        if !used.iter().any(|id| key_of(id) == name) {
            target.objects().remove(&name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::keys::tests::{ONE, TWO};
    use crate::place::Surroundings;
    use std::path::Path;

    /// The place at `root`, with a file of keys that has that text.
    pub(crate) fn encrypted(root: &Path, keys: &str) -> Place {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        std::fs::write(file.path(), keys).expect("written");
        let surroundings = Surroundings { variable: &|_| None, clock: Clock::machine() };
        Place::named(root, Some(file.path()), &surroundings).expect("a place")
    }

    fn refusal(outcome: Result<Target>) -> String {
        outcome.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_target_is_an_empty_directory_or_one_of_backups() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let root = directory.path().join("backups");
        let place = Place::directory(&root);
        assert!(Target::read(&place).is_err());
        let target = Target::open(&place).expect("made");
        assert!(Target::open(&place).is_err(), "another process writes there");
        assert!(Target::read(&place).is_ok());
        drop(target);
        assert!(Target::open(&place).is_ok());
        std::fs::write(root.join(MARKER), "{\"format\":3}\n").expect("written");
        assert!(Target::open(&place).is_err() && Target::read(&place).is_err());
        let other = directory.path().join("other");
        std::fs::create_dir(&other).expect("made");
        std::fs::write(other.join("letter.txt"), "dear").expect("written");
        let refused = refusal(Target::open(&Place::directory(&other)));
        assert!(refused.contains("letter.txt"), "{refused}");
        assert!(!other.join("lock").exists());
    }

    #[test]
    fn keys_go_with_encrypted_backups_only() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let [plain, sealed] = ["plain", "sealed"].map(|name| directory.path().join(name));
        drop(Target::open(&Place::directory(&plain)).expect("made"));
        drop(Target::open(&encrypted(&sealed, ONE)).expect("made"));
        for (place, why) in [
            (Place::directory(&sealed), "name the file of their keys"),
            (encrypted(&plain, ONE), "the backups are not encrypted"),
        ] {
            assert!(refusal(Target::open(&place)).contains(why) && refusal(Target::read(&place)).contains(why));
        }
        assert!(rekey(&Place::directory(&sealed)).is_err() && rekey(&encrypted(&plain, ONE)).is_err());
    }

    #[test]
    fn data_keys_are_wrapped_anew_and_the_old_key_is_needed_no_more() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let place = |keys: &str| encrypted(directory.path(), keys);
        let name = "files/a/x";
        let target = Target::open(&place(ONE)).expect("made");
        target.objects().put(name, b"secret").expect("written");
        drop(target);
        let read = |keys: &str| Target::read(&place(keys)).and_then(|target| target.objects().read(name));
        let refused = read(TWO).expect_err("another key").to_string();
        assert!(refused.contains("which the file of keys does not have"), "{refused}");
        assert!(rekey(&place(TWO)).is_err());
        let both = format!("{TWO}\n{ONE}");
        assert_eq!(rekey(&place(&both)).expect("wrapped").0, 1);
        assert_eq!(rekey(&place(&both)).expect("nothing to do").0, 0);
        assert_eq!(read(TWO).expect("readable").as_deref(), Some(&b"secret"[..]));
        assert!(read(ONE).is_err());
        assert!(refusal(Target::open(&place(ONE))).is_empty(), "no key is needed before an object is read");
    }
}
