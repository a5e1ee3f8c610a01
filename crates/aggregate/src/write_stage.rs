//! What the last stage of a pipeline writes.

use crate::{Merge, SourceName};
use bunko_timeseries::TimeSeries;
use std::sync::Arc;

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
