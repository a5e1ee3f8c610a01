//! The write of a pipeline's last stage.

use crate::{Merge, SourceName};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_timeseries::TimeSeries;
use std::sync::Arc;

/// Internal databases, which no pipeline writes to.
const INTERNAL: &[&str] = &["admin", "config", "local"];

/// The target of `$out`.
#[derive(Clone, Debug)]
pub struct OutTarget {
    /// The collection.
    pub name: SourceName,
    /// The time series that the collection must be, if the stage demands one.
    pub series: Option<TimeSeries>,
}

/// A stage that writes; it comes last.
#[derive(Clone)]
pub enum WriteStage {
    /// `$out` to this target.
    Out(OutTarget),
    /// `$merge`.
    Merge(Arc<Merge>),
}

impl WriteStage {
    /// Refuses an internal database as target, whether the stage or the command names it.
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
