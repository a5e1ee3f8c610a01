//! Reasons why a dump or a restore ended early.

use bunko_client::ClientError;
use std::path::PathBuf;
use std::{fmt, io};

/// Set when the user interrupts the run. Threads check it between units of work.
pub type Interrupted = std::sync::Arc<std::sync::atomic::AtomicBool>;

/// Reason why a run stopped.
#[derive(Debug)]
pub enum ToolError {
    /// A flag, or a combination of flags, makes no sense; the text names them.
    Usage(String),
    /// A file could not be read or written.
    File {
        /// The file; `-` is standard input or output.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The input is not a dump, or is damaged.
    Damaged {
        /// The file; `-` is standard input.
        path: PathBuf,
        /// Place of the damage, in bytes of the uncompressed stream.
        offset_bytes: u64,
        /// Description of the damage.
        found: String,
    },
    /// The server or the connection failed.
    Server {
        /// `database.collection`, or a database, or nothing.
        namespace: String,
        /// The server's error, or the connection's.
        cause: Box<ClientError>,
    },
    /// The user interrupted the run; finished work can be resumed.
    Interrupted,
    /// Anything else, in one sentence.
    Failed(String),
}

/// MongoDB's `Unauthorized`.
pub(crate) const UNAUTHORIZED: i32 = 13;
/// MongoDB's `OutOfDiskSpace`.
pub(crate) const OUT_OF_DISK_SPACE: i32 = 14031;

/// Whether a disk is full, or the user's quota is exhausted.
pub(crate) fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl ToolError {
    /// An error of the server or the connection during work on `namespace`.
    pub(crate) fn server(namespace: impl Into<String>, cause: impl Into<ClientError>) -> Self {
        Self::Server { namespace: namespace.into(), cause: Box::new(cause.into()) }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) => f.write_str(message),
            Self::File { path, cause } => write!(f, "{}: {cause}", path.display()),
            Self::Damaged { path, offset_bytes, found } => {
                write!(f, "{}: damaged at offset {offset_bytes}: {found}", path.display())
            }
            Self::Server { namespace, cause } if namespace.is_empty() => cause.fmt(f),
            Self::Server { namespace, cause } => write!(f, "{namespace}: {cause}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for ToolError {}
