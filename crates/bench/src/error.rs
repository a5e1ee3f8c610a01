//! Why a scenario gave no figures.

use bunko_client::load::LoadError;
use bunko_client::{ClientError, UriError};
use std::path::PathBuf;
use std::{fmt, io};

/// Why a scenario gave no figures. Figures that are there but mean nothing are a [`crate::Finding`].
#[derive(Debug)]
pub enum BenchError {
    /// An option that cannot be met.
    Option {
        /// The option's name as on the command line.
        name: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// The connection string.
    Uri(UriError),
    /// The embedded server did not start.
    EmbeddedServer(String),
    /// A control command failed.
    Client(ClientError),
    /// A load broke off.
    Load(LoadError),
    /// The report could not be written.
    Report {
        /// Where to.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option { name, detail } => write!(f, "--{name}: {detail}"),
            Self::Uri(error) => error.fmt(f),
            Self::EmbeddedServer(error) => write!(f, "the embedded server did not start: {error}"),
            Self::Client(error) => error.fmt(f),
            Self::Load(error) => error.fmt(f),
            Self::Report { path, cause } => write!(f, "cannot write {}: {cause}", path.display()),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<UriError> for BenchError {
    fn from(error: UriError) -> Self {
        Self::Uri(error)
    }
}

impl From<ClientError> for BenchError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<LoadError> for BenchError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}
