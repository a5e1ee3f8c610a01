//! Temporary directories that are removed with the test, and inventories of their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A directory below the temporary one.
pub struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        Self { directory: tempfile::Builder::new().prefix("faults-").tempdir().expect("temporary directory") }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Number of files of each kind.
#[derive(Debug)]
pub struct Inventory {
    by_kind: BTreeMap<String, usize>,
}

/// Files of one kind that a run may have beyond the usual number: how many tables and extents there are depends on the
/// timing of threads.
const SLACK: usize = 6;

impl Inventory {
    pub fn of(directory: &Path) -> Self {
        let mut by_kind = BTreeMap::new();
        for path in files(directory) {
            let below = path.strip_prefix(directory).expect("below");
            let folder = below.parent().map(|parent| parent.display().to_string()).unwrap_or_default();
            let name = below.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let kind = match name.rsplit_once('.') {
                Some((_, extension)) => format!("{folder}/*.{extension}"),
                None if name.trim_start_matches('v').bytes().all(|byte| byte.is_ascii_digit()) => format!("{folder}/*"),
                None => format!("{folder}/{name}"),
            };
            *by_kind.entry(kind).or_insert(0) += 1;
        }
        Self { by_kind }
    }

    /// Describes the files that a usual run does not leave; `None` if there are none.
    pub fn beyond(&self, usual: &Self) -> Option<String> {
        let is_too_much = |(kind, count): &(&String, &usize)| match usual.by_kind.get(*kind) {
            Some(usual) => **count > usual + SLACK,
            // The log keeps old segments for reuse.
            None => kind.as_str() != "log/*.recycled",
        };
        let left: Vec<_> = self.by_kind.iter().filter(is_too_much).collect();
        (!left.is_empty()).then(|| format!("left behind: {left:?}, usual is {:?}", usual.by_kind))
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
