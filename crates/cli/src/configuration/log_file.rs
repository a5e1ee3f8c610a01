//! The log's file, from the settings.

use super::in_force::Configuration;
use super::table::{LOG_APPEND, LOG_DESTINATION, LOG_PATH, LOG_ROTATE};
use std::path::PathBuf;

/// The log's file, if it does not go to standard error.
#[derive(Debug)]
pub struct LogFile {
    pub path: PathBuf,
    pub existing: ExistingLog,
    pub rotation: LogRotation,
}

/// Treatment of a log file that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingLog {
    Append,
    Refuse,
}

/// Treatment of a log file that is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRotation {
    /// The server renames it and begins a new one.
    Rename,
    /// Another program has renamed it; the server opens the file of its name again.
    Reopen,
}

/// The log's file; `None` for standard error.
/// # Errors
/// A sentence that names the settings that contradict each other.
pub fn options(configuration: &Configuration) -> Result<Option<LogFile>, String> {
    let Some(path) = configuration.text(&LOG_PATH) else {
        return match configuration.given(&LOG_DESTINATION) {
            Some(_) => Err(format!("{}: file needs {}", configuration.name_of(&LOG_DESTINATION), LOG_PATH.key())),
            None => Ok(None),
        };
    };
    let existing = if configuration.is_on(&LOG_APPEND) { ExistingLog::Append } else { ExistingLog::Refuse };
    let rotation = match configuration.text(&LOG_ROTATE).as_deref() {
        Some("reopen") if existing == ExistingLog::Refuse => {
            return Err(format!("{}: reopen needs {}: true", configuration.name_of(&LOG_ROTATE), LOG_APPEND.key()));
        }
        Some("reopen") => LogRotation::Reopen,
        _ => LogRotation::Rename,
    };
    Ok(Some(LogFile { path: path.into(), existing, rotation }))
}
