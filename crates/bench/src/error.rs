//! Reasons why a scenario gave no figures.

use crate::scenario::ScenarioError;
use bunko_client::load::LoadError;
use bunko_client::{ClientError, UriError};
use bunko_report::ReportError;
use std::path::PathBuf;
use std::{fmt, io};

/// Reason why a scenario gave no figures. Figures that mean nothing are not an error but a finding in the report.
#[derive(Debug)]
pub enum BenchError {
    /// The scenario cannot be run.
    Scenario(ScenarioError),
    /// An option of the command line that cannot be satisfied.
    Option {
        /// The option's name as on the command line.
        name: &'static str,
        /// The reason.
        detail: String,
    },
    /// The connection string is wrong.
    Uri(UriError),
    /// The embedded server did not start.
    EmbeddedServer(String),
    /// A control command failed.
    Client(ClientError),
    /// A load was aborted.
    Load(LoadError),
    /// The target holds data that the scenario would overwrite.
    DatabaseExists {
        /// The database.
        database: String,
        /// The server.
        address: String,
    },
    /// Several generators failed to connect with each other.
    Workers(String),
    /// A report that cannot be read, merged or compared.
    Report(ReportError),
    /// A file could not be written.
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(error) => error.fmt(f),
            Self::Option { name, detail } => write!(f, "--{name}: {detail}"),
            Self::Uri(error) => error.fmt(f),
            Self::EmbeddedServer(error) => write!(f, "the embedded server did not start: {error}"),
            Self::Client(error) => error.fmt(f),
            Self::Load(error) => error.fmt(f),
            Self::DatabaseExists { database, address } => {
                write!(f, "database '{database}' exists on {address}; '--drop {database}' allows the lab to drop it")
            }
            Self::Workers(detail) => write!(f, "workers: {detail}"),
            Self::Report(error) => error.fmt(f),
            Self::Write { path, cause } => write!(f, "cannot write {}: {cause}", path.display()),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<ScenarioError> for BenchError {
    fn from(error: ScenarioError) -> Self {
        Self::Scenario(error)
    }
}

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

impl From<ReportError> for BenchError {
    fn from(error: ReportError) -> Self {
        Self::Report(error)
    }
}
