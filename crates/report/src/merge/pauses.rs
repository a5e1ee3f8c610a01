//! Merges the generators' observations of their machines.

use super::MergeRefusal;
use super::run_share::{RunShare, decode};
use crate::result::MachinePauses;
use bunko_statistics::LatencyHistogram;

/// Adds the sleeping threads of all workers, bucket by bucket. Workers on one machine observed the same pauses, which
/// changes no percentile. `None` if no worker measured pauses.
///
/// # Errors
/// An undecodable histogram.
pub(super) fn sum(run: &str, parts: &[RunShare<'_>]) -> Result<Option<MachinePauses>, MergeRefusal> {
    let shares: Vec<(u32, &MachinePauses)> =
        parts.iter().filter_map(|part| Some((part.worker, part.measurement.pauses.as_ref()?))).collect();
    // The sum is worth only as much as its weakest share.
    let Some(priority) = shares.iter().map(|(_, share)| share.priority).min() else { return Ok(None) };
    let mut milliseconds = LatencyHistogram::default();
    for (worker, share) in &shares {
        milliseconds.merge(&decode(run, *worker, &share.histogram)?);
    }
    let of = || shares.iter().map(|(_, share)| share);
    Ok(Some(MachinePauses::new(
        of().map(|share| share.threads).sum(),
        priority,
        of().map(|share| share.wake_ups).sum(),
        of().map(|share| share.cpu_seconds).sum(),
        &milliseconds,
    )))
}
