//! The dump of a phase.

use crate::BenchError;
use crate::operation::Form;
use bunko_tools::dump::{ArchiveTarget, Output};
use bunko_tools::restore::{ArchiveSource, Source};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A phase's dump; removed when dropped.
pub(super) struct Archive {
    directory: TempDir,
    form: Form,
}

impl Archive {
    pub fn create(parent: &Path, form: Form) -> Result<Self, BenchError> {
        let directory = tempfile::Builder::new().prefix("bunko-bench-archive-").tempdir_in(parent);
        let directory = directory.map_err(|cause| BenchError::Write { path: parent.to_owned(), cause })?;
        Ok(Self { directory, form })
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("dump")
    }

    pub fn output(&self) -> Output {
        match self.form {
            Form::Archive => Output::Archive(ArchiveTarget::File(self.path())),
            Form::Directory => Output::Directory(self.path()),
        }
    }

    pub fn source(&self) -> Source {
        match self.form {
            Form::Archive => Source::Archive(ArchiveSource::File(self.path())),
            Form::Directory => Source::Directory { path: self.path(), database: None },
        }
    }

    /// Bytes of the dump on its filesystem.
    pub fn bytes(&self) -> u64 {
        bunko_host::directory_bytes(&self.path())
    }

    /// The temporary directory that holds it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}
