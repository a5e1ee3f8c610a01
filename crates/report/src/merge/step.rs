//! Matching the steps of all workers.

use super::worker::{Worker, all_complete};
use super::{MergeRefusal, run};
use crate::result::{Run, Step};

/// The sums of the steps that all workers ran.
pub(super) fn merge(workers: &[Worker<'_>]) -> Result<Vec<Step>, MergeRefusal> {
    if all_complete(workers) {
        workers[1..].iter().try_for_each(|worker| same_steps(&workers[0], worker))?;
    }
    let of_first = &workers[0].report.steps;
    let mut merged = Vec::with_capacity(of_first.len());
    for position in 0..of_first.len() {
        let counterparts: Option<Vec<&Step>> =
            workers.iter().map(|worker| counterpart(of_first, position, &worker.report.steps)).collect();
        let Some(counterparts) = counterparts else { continue };
        let runs = runs(workers, &counterparts)?;
        if !runs.is_empty() {
            // Each worker opens its share of the sockets.
            let connections = counterparts.iter().map(|step| step.connections).sum();
            let first = &of_first[position];
            // A published figure applies to one number of connections.
            let reference = first.reference.clone().filter(|_| connections == first.connections);
            merged.push(Step { connections, reference, runs, ..first.clone() });
        }
    }
    Ok(merged)
}

/// The counterpart of `steps[position]` in another worker's steps. Workers may have unequal shares of the connections,
/// so their number is not compared: among otherwise equal steps, the n-th is the counterpart of the n-th.
fn counterpart<'a>(steps: &[Step], position: usize, others: &'a [Step]) -> Option<&'a Step> {
    let step = &steps[position];
    let alike = |other: &&Step| {
        (other.target, &other.variant, &other.phase, &other.operation, other.in_flight)
            == (step.target, &step.variant, &step.phase, &step.operation, step.in_flight)
    };
    let before = steps[..position].iter().filter(alike).count();
    others.iter().filter(alike).nth(before)
}

fn same_steps(first: &Worker<'_>, other: &Worker<'_>) -> Result<(), MergeRefusal> {
    let lacking = |one: &Worker<'_>, another: &Worker<'_>| {
        let (steps, others) = (&one.report.steps, &another.report.steps);
        (0..steps.len()).find_map(|position| {
            let lacks = |what: &str| format!("{what} {} is in worker {} only", steps[position].label(), one.index);
            let Some(found) = counterpart(steps, position, others) else { return Some(lacks("step")) };
            let repetitions = |step: &Step| step.runs.iter().map(|run| run.repetition).collect::<Vec<_>>();
            let extra =
                repetitions(&steps[position]).into_iter().find(|number| !repetitions(found).contains(number))?;
            Some(lacks(&format!("repetition {extra} of")))
        })
    };
    match lacking(first, other).or_else(|| lacking(other, first)) {
        Some(detail) => Err(MergeRefusal::StepsDiffer { workers: (first.index, other.index), detail }),
        None => Ok(()),
    }
}

/// The repetitions that all workers have.
fn runs(workers: &[Worker<'_>], counterparts: &[&Step]) -> Result<Vec<Run>, MergeRefusal> {
    let mut merged = Vec::new();
    for of_first in &counterparts[0].runs {
        let repetition = of_first.repetition;
        let same = |step: &&'_ Step| step.runs.iter().position(|run| run.repetition == repetition);
        let positions: Option<Vec<usize>> = counterparts.iter().map(same).collect();
        let Some(positions) = positions else { continue };
        let runs: Vec<(&Worker<'_>, &Run)> = workers
            .iter()
            .zip(counterparts.iter().zip(positions))
            .map(|(worker, (step, position))| (worker, &step.runs[position]))
            .collect();
        let label = format!("{}, repetition {repetition}", counterparts[0].label());
        merged.push(run::merge(&label, &runs)?);
    }
    Ok(merged)
}
