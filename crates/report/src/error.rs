//! Errors of reading, comparing and merging reports.

use crate::merge::MergeRefusal;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a report could not be read, compared or merged.
#[derive(Debug)]
pub enum ReportError {
    /// The file could not be read.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        error: io::Error,
    },
    /// The file is not a report's JSON.
    NotAReport {
        /// The file.
        path: PathBuf,
        /// The error, with line and column.
        detail: String,
    },
    /// A report of another version of the format.
    Format {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u64,
    },
    /// There is no report for a history.
    NoReports,
    /// The two runs did different work.
    ScenariosDiffer {
        /// One line per setting that differs: its name, its value in A and in B.
        settings: Vec<String>,
    },
    /// The workers' reports are not shares of one run.
    Unmergeable(MergeRefusal),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NotAReport { path, detail } => write!(f, "{}: not a report: {detail}", path.display()),
            Self::Format { path, found } => {
                let ours = crate::result::FORMAT;
                write!(f, "{}: a report of format {found}; this program reads format {ours}", path.display())
            }
            Self::NoReports => f.write_str("there are no reports"),
            Self::ScenariosDiffer { settings } => {
                write!(f, "the two runs did different work; the settings that differ:")?;
                settings.iter().try_for_each(|setting| write!(f, "\n  {setting}"))
            }
            Self::Unmergeable(refusal) => write!(f, "cannot merge: {refusal}"),
        }
    }
}

impl std::error::Error for ReportError {}

impl From<MergeRefusal> for ReportError {
    fn from(refusal: MergeRefusal) -> Self {
        Self::Unmergeable(refusal)
    }
}
