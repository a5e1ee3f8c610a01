//! Where backups are, and the keys that they are encrypted with.

use crate::Result;
use crate::keys::KeyRing;
use crate::objects::{Directory, Objects};
use bunko_tools::ToolError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Addresses of stores that are not supported.
const STORES: [&str; 4] = ["s3://", "gs://", "az://", "https://"];

/// A place for backups.
#[derive(Clone, Debug)]
pub struct Place {
    directory: PathBuf,
    /// The keys of encrypted backups; `None` for backups that are not encrypted.
    keys: Option<Arc<KeyRing>>,
}

impl Place {
    /// The place that a user names, with the file of its keys.
    /// # Errors
    /// `Usage` for a kind of store that is not supported, and for a file that has no keys; `File`.
    pub fn named(name: &Path, key_file: Option<&Path>) -> Result<Self> {
        let text = name.to_string_lossy();
        if STORES.iter().any(|store| text.starts_with(store)) {
            return Err(ToolError::Usage(format!("{text}: a store of objects is not supported yet: name a directory")));
        }
        let keys = key_file.map(KeyRing::read).transpose()?.map(Arc::new);
        Ok(Self { directory: name.to_owned(), keys })
    }

    /// A directory of backups that are not encrypted.
    pub fn directory(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), keys: None }
    }

    /// The directory above the backups.
    pub fn beside(&self) -> &Path {
        let above = self.directory.parent().filter(|above| !above.as_os_str().is_empty());
        above.unwrap_or(Path::new("."))
    }

    pub(crate) fn keys(&self) -> Option<&Arc<KeyRing>> {
        self.keys.as_ref()
    }

    /// Its objects, as they are stored.
    pub(crate) fn objects(&self) -> Box<dyn Objects> {
        Box::new(Directory::new(&self.directory))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.directory.display().fmt(f)
    }
}
