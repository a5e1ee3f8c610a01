//! What can go wrong below the catalog; knows no server codes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A failure of the storage layer, with the facts an operator needs.
#[derive(Debug)]
pub enum StorageError {
    /// The operating system refused.
    Io {
        /// What was touched.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Bytes on disk are not what was written.
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where in the file the bad bytes begin.
        offset_bytes: u64,
        /// What was found.
        found: String,
    },
    /// No room for the next log segment; nothing of the refused write was kept.
    OutOfDiskSpace {
        /// The directory that is full.
        path: PathBuf,
    },
    /// Another process has the data directory open.
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Written by a newer version of the program.
    NewerFormat {
        /// The manifest.
        path: PathBuf,
        /// The version that it names.
        found: u32,
        /// The newest that this program reads.
        supported: u32,
    },
    /// One record larger than a segment can hold.
    RecordTooLarge {
        /// Its length in bytes.
        length_bytes: u64,
    },
    /// The log failed before; nothing is acknowledged any more.
    LogFailed,
}

impl StorageError {
    /// Wraps an I/O error with its path; a full disk becomes [`StorageError::OutOfDiskSpace`].
    pub fn io(path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::StorageFull || source.kind() == io::ErrorKind::QuotaExceeded {
            return Self::OutOfDiskSpace { path: path.to_owned() };
        }
        Self::Io { path: path.to_owned(), source }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Corrupt { file, offset_bytes, found } => {
                write!(f, "{}: corrupt at offset {offset_bytes}: {found}", file.display())
            }
            Self::OutOfDiskSpace { path } => write!(f, "{}: no space left for the log", path.display()),
            Self::Locked { path } => {
                write!(f, "{}: another process has this data directory open", path.display())
            }
            Self::NewerFormat { path, found, supported } => write!(
                f,
                "{}: data directory has format version {found}, this program reads up to {supported}",
                path.display()
            ),
            Self::RecordTooLarge { length_bytes } => {
                write!(f, "a write of {length_bytes} bytes does not fit into one log segment")
            }
            Self::LogFailed => write!(f, "the log failed earlier; the server must be restarted"),
        }
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Io { source, .. } = self { Some(source) } else { None }
    }
}
