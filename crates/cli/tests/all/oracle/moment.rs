//! Moments worth a crash, recognised by changes in a data directory.

use super::is_tested;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_micros(200);

/// A moment in an engine's background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// An extent is being written.
    ExtentBegun,
    /// An extent has been given its name.
    ExtentNamed,
    /// An extent that was rewritten has been deleted.
    ExtentGone,
    /// A segment of the log has been deleted.
    SegmentGone,
    /// A table of keys has been written.
    TableWritten,
    /// Pages have been written.
    DataFileWritten,
    /// A checkpoint has replaced the manifest.
    ManifestReplaced,
}

impl Moment {
    /// `SegmentGone` comes twice: it is the hardest to hit, because it lasts only while a manifest is being written.
    const ALL: [Self; 8] = [
        Self::SegmentGone,
        Self::ExtentBegun,
        Self::ExtentNamed,
        Self::ExtentGone,
        Self::SegmentGone,
        Self::TableWritten,
        Self::DataFileWritten,
        Self::ManifestReplaced,
    ];

    /// The moments of the engines that are tested.
    pub fn all() -> Vec<Self> {
        Self::ALL.into_iter().filter(|moment| moment.engine().is_none_or(is_tested)).collect()
    }

    /// The engine that has such moments; `None` if every server has them.
    fn engine(self) -> Option<&'static str> {
        match self {
            Self::ExtentBegun | Self::ExtentNamed | Self::ExtentGone | Self::TableWritten => Some("lsm"),
            Self::DataFileWritten => Some("mmap"),
            Self::SegmentGone | Self::ManifestReplaced => None,
        }
    }

    /// Whether the moment lies between two looks.
    fn is_between(self, before: &Look, after: &Look) -> bool {
        let has_come = |directory, end| after.has_other_than(before, directory, end);
        let has_gone = |directory, end| before.has_other_than(after, directory, end);
        match self {
            Self::ExtentBegun => has_come(EXTENTS, "tmp"),
            Self::ExtentNamed => has_come(EXTENTS, "extent"),
            Self::ExtentGone => has_gone(EXTENTS, "extent"),
            Self::SegmentGone => has_gone(LOG, "segment"),
            Self::TableWritten => has_come(TABLES, ""),
            Self::DataFileWritten => before.data_file_time != after.data_file_time,
            Self::ManifestReplaced => before.manifest != after.manifest,
        }
    }
}

const LOG: &str = "log";
const EXTENTS: &str = "extents";
const TABLES: &str = "trees/tables";

/// State of a data directory at one time.
struct Look {
    /// Files by directory.
    files: BTreeMap<&'static str, BTreeSet<PathBuf>>,
    /// Inode of the manifest: each manifest is a new file.
    manifest: Option<u64>,
    data_file_time: Option<SystemTime>,
}

impl Look {
    /// Whether a directory has a file with that extension that it does not have in the other look.
    fn has_other_than(&self, other: &Self, directory: &str, extension: &str) -> bool {
        self.files[directory]
            .difference(&other.files[directory])
            .any(|path| path.extension().unwrap_or_default() == extension)
    }
}

/// Watches a data directory.
pub struct Watch {
    dbpath: PathBuf,
}

impl Watch {
    pub fn new(dbpath: &Path) -> Self {
        Self { dbpath: dbpath.to_owned() }
    }

    /// Waits for a moment, at most that long; returns whether it came.
    pub fn wait(&self, moment: Moment, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut before = self.look();
        while Instant::now() < deadline {
            std::thread::sleep(LOOK_PAUSE);
            let after = self.look();
            if moment.is_between(&before, &after) {
                return true;
            }
            before = after;
        }
        false
    }

    fn look(&self) -> Look {
        // Some directories are made only with their first file.
        let list = |directory| fs::read_dir(self.dbpath.join(directory)).into_iter().flatten().flatten();
        let files =
            [LOG, EXTENTS, TABLES].map(|directory| (directory, list(directory).map(|file| file.path()).collect()));
        let manifest = fs::metadata(self.dbpath.join("manifest.bson")).ok();
        let data_file = fs::metadata(self.dbpath.join("mmap/data.mdb"));
        Look {
            files: files.into(),
            manifest: manifest.map(|manifest| manifest.ino()),
            data_file_time: data_file.and_then(|file| file.modified()).ok(),
        }
    }
}
