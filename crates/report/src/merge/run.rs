//! One repetition of a step, as all workers saw it.

use super::MergeRefusal;
use super::measurement;
use super::refusal::STARTS_APART_MS_MAX;
use super::run_share::RunShare;
use super::worker::Worker;
use crate::result::{Outcome, Run};

/// Adds up the workers' shares of one run; `label` names the run in refusals.
pub(super) fn merge(label: &str, runs: &[(&Worker<'_>, &Run)]) -> Result<Run, MergeRefusal> {
    let starts = runs.iter().map(|(worker, run)| (worker.server_time_ms(run.started_at_ms), worker.index));
    let later = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0);
    let (Some(first), Some(last)) = (starts.clone().min_by(later), starts.max_by(later)) else {
        return Err(MergeRefusal::Nothing);
    };
    if last.0 - first.0 > STARTS_APART_MS_MAX {
        let (workers, apart_ms) = ((first.1, last.1), last.0 - first.0);
        return Err(MergeRefusal::StartsApart { run: label.to_owned(), workers, apart_ms });
    }
    let mut parts = Vec::with_capacity(runs.len());
    let mut skipped = Vec::new();
    for (worker, run) in runs {
        let late_seconds = (worker.server_time_ms(run.started_at_ms) - first.0) / 1e3;
        match &run.outcome {
            Outcome::Measured(measurement) => parts.push(RunShare { worker: worker.index, late_seconds, measurement }),
            Outcome::Skipped { reason } => skipped.push((worker.index, reason)),
        }
    }
    let outcome = match skipped.first() {
        None => Outcome::Measured(Box::new(measurement::sum(label, &parts)?)),
        Some((_, reason)) if parts.is_empty() => Outcome::Skipped { reason: (*reason).clone() },
        // A sum without this worker's part would look like the whole load.
        Some((worker, reason)) => Outcome::Skipped { reason: format!("worker {worker} skipped it: {reason}") },
    };
    Ok(Run { repetition: runs[0].1.repetition, started_at_ms: first.0 as u64, outcome })
}
