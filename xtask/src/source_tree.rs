//! The repository's files, without those that builds and package clients leave behind.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing written by hand.
const PASSED_OVER: &[&str] = &["target", "node_modules", "__pycache__", "bunko-data"];

/// A file's path below the root, with `/`, and the path to read it from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFile {
    pub name: String,
    pub path: PathBuf,
}

impl SourceFile {
    pub fn read(&self) -> Result<String, String> {
        fs::read_to_string(&self.path).map_err(|error| format!("{}: {error}", self.name))
    }

    pub fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }
}

/// Every file below `root/folder`, by name; none if the folder does not exist. Hidden files are left out.
pub fn files(root: &Path, folder: &str) -> Result<Vec<SourceFile>, String> {
    let mut found = Vec::new();
    let start = root.join(folder);
    if start.is_dir() {
        collect(root, &start, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<SourceFile>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || PASSED_OVER.contains(&name.as_str()) {
            continue;
        }
        let path = entry.path();
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(root, &path, found)?;
        } else {
            let below = path.strip_prefix(root).expect("found below the root");
            found.push(SourceFile { name: below.to_string_lossy().replace('\\', "/"), path });
        }
    }
    Ok(())
}
