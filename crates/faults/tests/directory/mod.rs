//! Directories that go with the test, and what is in them.

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

/// How many files of each kind there are.
#[derive(Debug)]
pub struct Inventory {
    by_kind: BTreeMap<String, usize>,
}

/// Files of a kind that a run may have more of than another: tables and extents depend on when a thread came to work.
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

    /// What is there that has no place in a directory that was used as usual.
    pub fn beyond(&self, usual: &Self) -> Option<String> {
        let is_too_much = |(kind, count): &(&String, &usize)| match usual.by_kind.get(*kind) {
            Some(usual) => **count > usual + SLACK,
            // Segments that are kept for later.
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
