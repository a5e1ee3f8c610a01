//! One worker's share of a run.

use super::MergeRefusal;
use crate::result::Measurement;
use bunko_statistics::LatencyHistogram;

/// One worker's share of a run.
#[derive(Clone, Copy)]
pub(super) struct RunShare<'a> {
    /// Its index.
    pub worker: u32,
    /// Delay of its starting signal after the earliest one, by the server's clock.
    pub late_seconds: f64,
    /// Its figures.
    pub measurement: &'a Measurement,
}

/// Decodes a worker's histogram.
pub(super) fn decode(run: &str, worker: u32, encoded: &str) -> Result<LatencyHistogram, MergeRefusal> {
    LatencyHistogram::decode(encoded).map_err(|error| MergeRefusal::Histogram {
        worker,
        run: run.to_owned(),
        detail: error.to_string(),
    })
}
