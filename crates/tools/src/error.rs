//! Why a dump or a restore ended early.

use bunko_client::ClientError;
use std::path::PathBuf;
use std::{fmt, io};

/// Whether somebody asked for the end: threads look at it between units of work.
pub type Interrupted = std::sync::Arc<std::sync::atomic::AtomicBool>;

/// What stopped a run.
#[derive(Debug)]
pub enum ToolError {
    /// A flag, or two flags together, make no sense; names them.
    Usage(String),
    /// A file could not be read or written.
    File {
        /// Which; `-` is standard input or output.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// What was read is not a dump, or is damaged.
    Damaged {
        /// Which file; `-` is standard input.
        path: PathBuf,
        /// Where in it, in bytes of the uncompressed stream.
        offset_bytes: u64,
        /// What was found.
        found: String,
    },
    /// The server, while working on a namespace.
    Server {
        /// `database.collection`, or a database, or nothing.
        namespace: String,
        /// What it said, or what happened to the connection.
        cause: Box<ClientError>,
    },
    /// It was told to stop; what was done can be resumed.
    Interrupted,
    /// Anything else, in one sentence.
    Failed(String),
}

/// MongoDB's `Unauthorized`.
pub(crate) const UNAUTHORIZED: i32 = 13;
/// MongoDB's `OutOfDiskSpace`.
pub(crate) const OUT_OF_DISK_SPACE: i32 = 14031;

/// Whether a disk has no room left, or its user may not have more of it.
pub(crate) fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl ToolError {
    /// What the server said while working on `namespace`, or what happened to the connection.
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
