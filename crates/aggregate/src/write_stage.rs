//! What the last stage of a pipeline writes.

use crate::{Merge, SourceName};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_timeseries::TimeSeries;
use std::sync::Arc;

/// Databases of the server's own, which no pipeline writes to.
const INTERNAL: &[&str] = &["admin", "config", "local"];

/// Where `$out` writes.
#[derive(Clone, Debug)]
pub struct OutTarget {
    /// The collection.
    pub name: SourceName,
    /// What the collection must be a time series with, where the stage says so.
    pub series: Option<TimeSeries>,
}

/// A stage that writes; it stands last.
#[derive(Clone)]
pub enum WriteStage {
    /// `$out`, into that collection.
    Out(OutTarget),
    /// `$merge`.
    Merge(Arc<Merge>),
}

impl WriteStage {
    /// Refuses the server's databases as the database that the stage writes to, whether the stage names it or the command.
    /// # Errors
    /// 31321 for `$out`, 31320 for `$merge`.
    pub fn check_database(&self, database: &str) -> Result<()> {
        if !INTERNAL.contains(&database) {
            return Ok(());
        }
        let (code, message) = match self {
            Self::Out(_) => (31321, format!("Can't $out to internal database: {database}")),
            Self::Merge(_) => (31320, format!("Cannot $merge to internal database: {database}")),
        };
        Err(Failure::new(ErrorCode(code), message))
    }
}
