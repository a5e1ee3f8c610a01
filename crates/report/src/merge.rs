//! Merges the reports of several generators that shared a load.
//!
//! Every generator runs the same scenario against the same server with its share of the rate and of the keys (`--worker
//! INDEX/COUNT`). The generators' work is added up: requests, documents, histograms bucket by bucket. Their
//! observations of the server are not: all observed the same server.

mod finding;
mod interval;
mod measurement;
mod pauses;
mod provenance;
mod refusal;
mod run;
mod run_share;
mod step;
mod worker;

pub use refusal::MergeRefusal;

use crate::error::ReportError;
use crate::result::{Completion, Report, WorkerShare};
use worker::Worker;

/// Merges the reports of all workers of one run. Times in the result are by the server's clock.
///
/// If a worker did not finish, the steps that all workers ran are merged, and the [`Completion`] says so.
///
/// # Errors
/// [`ReportError::Unmergeable`] with the difference, if the reports are not exactly the shares of one run or their
/// clocks do not agree.
pub fn merge(reports: &[Report]) -> Result<Report, ReportError> {
    let workers = worker::gather(reports)?;
    let steps = step::merge(&workers)?;
    let first = workers[0].report;
    let started_at_ms = workers.iter().map(|worker| worker.server_time_ms(worker.report.started_at_ms));
    let ended_at_ms = workers.iter().map(|worker| worker.server_time_ms(worker.report.ended_at_ms));
    // All workers saw the same server, but one may have been stopped before it looked.
    let storage = workers.iter().map(|worker| &worker.report.storage).find(|storage| !storage.is_empty());
    let allocations = workers.iter().map(|worker| &worker.report.allocations).find(|trials| !trials.is_empty());
    Ok(Report {
        format: first.format,
        lab_version: first.lab_version.clone(),
        command: provenance::command(&first.command, workers.len()),
        scenario: first.scenario.clone(),
        started_at_ms: started_at_ms.fold(f64::INFINITY, f64::min) as u64,
        ended_at_ms: ended_at_ms.fold(0.0, f64::max) as u64,
        completion: completion(&workers),
        worker: Some(WorkerShare::Merged { count: workers.len() as u32 }),
        machine: provenance::machine(&workers),
        targets: provenance::targets(&workers),
        steps,
        storage: storage.cloned().unwrap_or_default(),
        allocations: allocations.cloned().unwrap_or_default(),
    })
}

fn completion(workers: &[Worker<'_>]) -> Completion {
    let failure = workers.iter().find_map(|worker| match &worker.report.completion {
        Completion::Failed { reason } => Some(format!("worker {}: {reason}", worker.index)),
        Completion::Complete | Completion::Interrupted => None,
    });
    match failure {
        Some(reason) => Completion::Failed { reason },
        None if worker::all_complete(workers) => Completion::Complete,
        None => Completion::Interrupted,
    }
}
