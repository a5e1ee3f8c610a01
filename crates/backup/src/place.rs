//! Where backups are, and the keys that they are encrypted with.

use crate::Result;
use crate::keys::KeyRing;
use crate::objects::{BucketObjects, Directory, Objects, of_s3};
use bunko_host::Clock;
use bunko_s3::{Address, Bucket, Settings};
use bunko_tools::ToolError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Addresses of stores that are not supported.
const STORES: [&str; 4] = ["gs://", "az://", "http://", "https://"];

/// A place for backups.
#[derive(Clone, Debug)]
pub struct Place {
    store: Store,
    /// The keys of encrypted backups; `None` for backups that are not encrypted.
    keys: Option<Arc<KeyRing>>,
}

#[derive(Clone, Debug)]
enum Store {
    Directory(PathBuf),
    /// The settings of the bucket, and the clock that signs requests.
    Bucket(Box<Settings>, Clock),
}

/// The surroundings of this process.
pub struct Surroundings<'s> {
    /// Reads an environment variable.
    pub variable: &'s dyn Fn(&str) -> Option<String>,
    /// The machine's clock.
    pub clock: Clock,
}

impl Place {
    /// The place that a user names, a directory or `s3://bucket/prefix`, with the file of its keys.
    /// # Errors
    /// `Usage` for a kind of store that is not supported, for settings of S3 that are missing, and for a file that has no
    /// keys; `File`.
    pub fn named(name: &Path, key_file: Option<&Path>, surroundings: &Surroundings<'_>) -> Result<Self> {
        let text = name.to_string_lossy();
        if STORES.iter().any(|store| text.starts_with(store)) {
            let why = "this store is not supported: name a directory or s3://BUCKET/PREFIX";
            return Err(ToolError::Usage(format!("{text}: {why}")));
        }
        let store = if Address::is_meant(&text) {
            let settings = Address::parse(&text)
                .and_then(|address| Settings::of_environment(address, surroundings.variable))
                .map_err(of_s3)?;
            Store::Bucket(Box::new(settings), surroundings.clock.clone())
        } else {
            Store::Directory(name.to_owned())
        };
        let keys = key_file.map(KeyRing::read).transpose()?.map(Arc::new);
        Ok(Self { store, keys })
    }

    /// A directory of backups that are not encrypted.
    pub fn directory(directory: &Path) -> Self {
        Self { store: Store::Directory(directory.to_owned()), keys: None }
    }

    /// The directory above the backups; `None` if they are in a bucket.
    pub fn beside(&self) -> Option<&Path> {
        let Store::Directory(directory) = &self.store else { return None };
        let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
        Some(above.unwrap_or(Path::new(".")))
    }

    /// Whether the backups are in a bucket.
    pub(crate) fn is_bucket(&self) -> bool {
        matches!(self.store, Store::Bucket(..))
    }

    pub(crate) fn keys(&self) -> Option<&Arc<KeyRing>> {
        self.keys.as_ref()
    }

    /// Its objects, as they are stored.
    /// # Errors
    /// `Usage` for settings of S3 that make no sense.
    pub(crate) fn objects(&self) -> Result<Box<dyn Objects>> {
        match &self.store {
            Store::Directory(directory) => Ok(Box::new(Directory::new(directory))),
            Store::Bucket(settings, clock) => {
                let bucket = Bucket::open(Settings::clone(settings), clock.clone()).map_err(of_s3)?;
                Ok(Box::new(BucketObjects::new(bucket, clock.clone())))
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.store {
            Store::Directory(directory) => directory.display().fmt(f),
            Store::Bucket(settings, _) => settings.address.fmt(f),
        }
    }
}
