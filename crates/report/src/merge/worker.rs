//! The shares of one run: checks that all are present, each once.

use super::MergeRefusal;
use crate::result::{Completion, FORMAT, Report, TargetRecord, WorkerShare};

/// One generator's report.
#[derive(Clone, Copy)]
pub(super) struct Worker<'a> {
    /// Index, from 0.
    pub index: u32,
    /// Its clock minus the server's, in milliseconds.
    clock_offset_ms: f64,
    /// Its report.
    pub report: &'a Report,
}

impl Worker<'_> {
    /// Converts a time from this worker's clock to the server's; both in milliseconds since 1970.
    pub(super) fn server_time_ms(&self, worker_time_ms: u64) -> f64 {
        worker_time_ms as f64 - self.clock_offset_ms
    }
}

/// Whether every worker completed the scenario.
pub(super) fn all_complete(workers: &[Worker<'_>]) -> bool {
    workers.iter().all(|worker| worker.report.completion == Completion::Complete)
}

/// All workers of a run in the order of their indexes; at least one.
///
/// # Errors
/// The reason why the reports are not exactly the shares of one run.
pub(super) fn gather(reports: &[Report]) -> Result<Vec<Worker<'_>>, MergeRefusal> {
    let mut workers = Vec::with_capacity(reports.len());
    let mut counts = Vec::with_capacity(reports.len());
    for (position, report) in reports.iter().enumerate() {
        if report.format != FORMAT {
            return Err(MergeRefusal::Format { report: position + 1, found: report.format });
        }
        let Some(WorkerShare::Share { index, count, clock_offset_ms }) = report.worker else {
            return Err(MergeRefusal::NotAShare { report: position + 1 });
        };
        if !clock_offset_ms.is_finite() {
            return Err(MergeRefusal::ClockUnknown { worker: index });
        }
        workers.push(Worker { index, clock_offset_ms, report });
        counts.push(count);
    }
    let Some(&count) = counts.first() else { return Err(MergeRefusal::Nothing) };
    if let Some(&other) = counts.iter().find(|&&other| other != count) {
        return Err(MergeRefusal::CountsDiffer { counts: (count, other) });
    }
    workers.sort_by_key(|worker| worker.index);
    each_once(&workers, count)?;
    workers.iter().try_for_each(|worker| same_work(&workers[0], worker))?;
    Ok(workers)
}

fn each_once(workers: &[Worker<'_>], count: u32) -> Result<(), MergeRefusal> {
    if let Some(twice) = workers.windows(2).find(|pair| pair[0].index == pair[1].index) {
        return Err(MergeRefusal::Duplicate { worker: twice[0].index });
    }
    if let Some(beyond) = workers.iter().find(|worker| worker.index >= count) {
        return Err(MergeRefusal::IndexBeyondCount { worker: beyond.index, count });
    }
    match (0..count).find(|&index| workers.get(index as usize).is_none_or(|worker| worker.index != index)) {
        Some(worker) => Err(MergeRefusal::Missing { worker, count }),
        None => Ok(()),
    }
}

fn same_work(first: &Worker<'_>, other: &Worker<'_>) -> Result<(), MergeRefusal> {
    let differs = |what: &'static str, values: (&str, &str)| {
        let [first_value, other_value] = [values.0.to_owned(), values.1.to_owned()];
        let workers = (first.index, other.index);
        (first_value != other_value).then_some(MergeRefusal::Differs {
            what,
            workers,
            values: (first_value, other_value),
        })
    };
    let (a, b) = (first.report, other.report);
    let seeds = (a.scenario.seed.to_string(), b.scenario.seed.to_string());
    let servers = (servers(&a.targets), servers(&b.targets));
    let difference = differs("the lab's version", (&a.lab_version, &b.lab_version))
        .or_else(|| differs("the scenario's hash", (&a.scenario.hash, &b.scenario.hash)))
        .or_else(|| differs("the seed", (&seeds.0, &seeds.1)))
        .or_else(|| differs("their servers", (&servers.0, &servers.1)));
    if let Some(refusal) = difference {
        return Err(refusal);
    }
    match b.targets.iter().find(|target| target.embedded) {
        Some(target) => Err(MergeRefusal::EmbeddedServer { worker: other.index, target: target.label.clone() }),
        None => Ok(()),
    }
}

/// The servers' own descriptions. Addresses are left out: one worker may use the loopback where others use a name.
fn servers(targets: &[TargetRecord]) -> String {
    let server = |target: &TargetRecord| {
        let or_unknown = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
        format!("{} {}", or_unknown(&target.storage_engine), or_unknown(&target.version))
    };
    targets.iter().map(server).collect::<Vec<_>>().join(", ")
}
