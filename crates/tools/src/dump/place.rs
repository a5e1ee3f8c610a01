//! Prepares the place of the output before anything is written to it.

use super::options::{ArchiveTarget, Output};
use super::plan::Resumability;
use crate::{ToolError, unfinished};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A place that can be written to.
pub(super) struct OutputPlace {
    pub resumability: Resumability,
    /// The file that records progress; `None` if the dump cannot be resumed.
    pub state: Option<PathBuf>,
    /// Existing output, if it is more than an empty file or directory.
    pub existing: Option<PathBuf>,
    /// The file or directory that was made for this dump.
    made: Option<PathBuf>,
}

impl OutputPlace {
    /// Makes a missing directory or file.
    /// # Errors
    /// `File`.
    pub fn prepare(output: &Output) -> Result<Self, ToolError> {
        match output {
            Output::Directory(root) => Self::directory(root),
            Output::Archive(ArchiveTarget::File(path)) => Self::file(path),
            Output::Archive(ArchiveTarget::Stdout | ArchiveTarget::Pipe(_)) | Output::StandardOutput => {
                Ok(Self::once())
            }
        }
    }

    fn once() -> Self {
        Self { resumability: Resumability::Once, state: None, existing: None, made: None }
    }

    fn directory(root: &Path) -> Result<Self, ToolError> {
        let failed = |cause| ToolError::File { path: root.to_owned(), cause };
        let made = (!root.exists()).then(|| root.to_owned());
        fs::create_dir_all(root).map_err(failed)?;
        let state = unfinished::state_in(root);
        let mut entries = fs::read_dir(root).map_err(failed)?.flatten();
        let holds_something = entries.any(|entry| entry.path() != state);
        Ok(Self {
            resumability: Resumability::Resumable,
            state: Some(state),
            existing: holds_something.then(|| root.to_owned()),
            made,
        })
    }

    fn file(path: &Path) -> Result<Self, ToolError> {
        let failed = |cause| ToolError::File { path: path.to_owned(), cause };
        let length = match fs::metadata(path) {
            // A pipe is opened only once: its reader takes the first closing for the end.
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => return Ok(Self::once()),
            Ok(metadata) => Some(metadata.len()),
            Err(_) => None,
        };
        // An output that cannot be written to is reported before the server is asked anything.
        File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
        Ok(Self {
            resumability: Resumability::Resumable,
            state: Some(unfinished::state_beside(path)),
            existing: length.filter(|length| *length > 0).map(|_| path.to_owned()),
            made: length.is_none().then(|| path.to_owned()),
        })
    }

    /// Removes the file or directory that was made for a dump that does not begin: an empty directory would look like a
    /// whole dump.
    pub fn give_up(&self) {
        let Some(made) = &self.made else { return };
        // Only an empty directory or file is removed. Errors are ignored: the reason why the dump does not begin is
        // reported instead.
        let _ = match fs::metadata(made) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir(made),
            Ok(metadata) if metadata.len() == 0 => fs::remove_file(made),
            _ => Ok(()),
        };
    }
}
