//! What the generators saw of their machines.

use super::MergeRefusal;
use super::measurement::{Part, decode};
use crate::result::MachinePauses;
use bunko_statistics::LatencyHistogram;

/// All sleepers of all workers, bucket by bucket. Workers on one machine saw the same pauses, which changes no percentile.
/// `None` where no worker could watch its machine.
///
/// # Errors
/// A histogram that cannot be read.
pub(super) fn sum(run: &str, parts: &[Part<'_>]) -> Result<Option<MachinePauses>, MergeRefusal> {
    let shares: Vec<(u32, &MachinePauses)> =
        parts.iter().filter_map(|part| Some((part.worker, part.measurement.pauses.as_ref()?))).collect();
    // The sum is worth no more than its least share.
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
