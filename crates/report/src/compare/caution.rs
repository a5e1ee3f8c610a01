//! Facts to know before believing a comparison.

use crate::result::{Completion, Finding, Machine, Outcome, Report, Severity, Step, TargetRecord, WorkerShare};
use crate::text;

/// Differences of two reports besides the server.
pub(super) fn of_reports(a: &Report, b: &Report) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(incomplete("A", &a.completion));
    cautions.extend(incomplete("B", &b.completion));
    cautions.extend(differs("the generator's machines", &machine(&a.machine), &machine(&b.machine)));
    cautions.extend(differs("the generators' shares of the load", &share(a.worker), &share(b.worker)));
    cautions.extend(differs("the lab's versions", &a.lab_version, &b.lab_version));
    for (target, other) in a.targets.iter().zip(&b.targets) {
        cautions.extend(servers_unlike(("A", target), ("B", other)));
    }
    cautions
}

/// Differences of two targets of one report besides the server.
pub(super) fn of_run(report: &Report, (a, b): (&TargetRecord, &TargetRecord)) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(incomplete("the run", &report.completion));
    cautions.extend(servers_unlike((&a.label, a), (&b.label, b)));
    cautions
}

/// Steps without figures, invalid figures, and latencies caused by the machine.
pub(super) fn of_steps(pairs: &[(&Step, &Step)], (label_a, label_b): (&str, &str)) -> Vec<String> {
    let mut cautions = Vec::new();
    for (label, steps) in [(label_a, side(pairs, |pair| pair.0)), (label_b, side(pairs, |pair| pair.1))] {
        cautions.extend(with_others(label, "was skipped", &steps, skipped));
        cautions.extend(with_others(label, "is not valid", &steps, invalid));
        cautions.extend(with_others(label, "is slowed by its machine", &steps, paused));
        cautions.extend(with_others(label, "is short", &steps, short));
        cautions.extend(with_others(label, "is on a loop device", &steps, on_loop_device));
    }
    cautions
}

fn side<'a>(pairs: &[(&'a Step, &'a Step)], pick: fn(&(&'a Step, &'a Step)) -> &'a Step) -> Vec<&'a Step> {
    pairs.iter().map(pick).collect()
}

/// The first step with a problem, and the number of others.
fn with_others(label: &str, what: &str, steps: &[&Step], wrong: fn(&Step) -> Option<String>) -> Option<String> {
    let mut found = steps.iter().filter_map(|step| Some((step, wrong(step)?)));
    let (step, detail) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        count => format!(" (and {count} more {})", if count == 1 { "step" } else { "steps" }),
    };
    Some(format!("in {label} {} {what}: {detail}{more}", step.label()))
}

fn skipped(step: &Step) -> Option<String> {
    step.runs.iter().find_map(|run| match &run.outcome {
        Outcome::Skipped { reason } => Some(reason.clone()),
        Outcome::Measured(_) => None,
    })
}

fn invalid(step: &Step) -> Option<String> {
    first(step, |finding| finding.severity() == Severity::Invalid)
}

fn paused(step: &Step) -> Option<String> {
    first(step, |finding| matches!(finding, Finding::MachinePauses { .. }))
}

fn short(step: &Step) -> Option<String> {
    first(step, |finding| matches!(finding, Finding::Short { .. }))
}

fn on_loop_device(step: &Step) -> Option<String> {
    first(step, |finding| matches!(finding, Finding::LoopDevice(_)))
}

fn first(step: &Step, is_it: impl Fn(&Finding) -> bool) -> Option<String> {
    let mut findings = step.measurements().flat_map(|measurement| &measurement.findings);
    findings.find(|finding| is_it(finding)).map(ToString::to_string)
}

fn incomplete(label: &str, completion: &Completion) -> Option<String> {
    match completion {
        Completion::Complete => None,
        Completion::Interrupted => Some(format!("{label} was interrupted")),
        Completion::Failed { reason } => Some(format!("{label} failed: {reason}")),
    }
}

/// Differences between the servers, such as durability, transports and settings.
fn servers_unlike((label_a, a): (&str, &TargetRecord), (label_b, b): (&str, &TargetRecord)) -> Vec<String> {
    let promises = (a.durability != b.durability).then(|| {
        format!(
            "an acknowledgement promises different things: {label_a}: {}; {label_b}: {}",
            a.durability, b.durability
        )
    });
    let (over_a, over_b) = (text::transports(a), text::transports(b));
    let transports = (over_a != over_b)
        .then(|| format!("the servers are reached differently: {label_a}: over {over_a}; {label_b}: over {over_b}"));
    let settings = (a.settings != b.settings).then(|| {
        let (a, b) = (text::settings(a), text::settings(b));
        format!("the servers' settings differ: {label_a}: {a}; {label_b}: {b}")
    });
    promises.into_iter().chain(transports).chain(settings).collect()
}

fn differs(what: &str, a: &str, b: &str) -> Option<String> {
    (a != b).then(|| format!("{what} differ: {a} in A, {b} in B"))
}

fn machine(machine: &Machine) -> String {
    let gib = machine.memory_bytes as f64 / f64::from(1_u32 << 30);
    format!("{}, {} cores, {gib:.1} GiB, {}", machine.processor, machine.cores, machine.kernel)
}

fn share(worker: Option<WorkerShare>) -> String {
    match worker {
        None => "one generator".to_owned(),
        Some(WorkerShare::Share { index, count, .. }) => format!("worker {index} of {count}"),
        Some(WorkerShare::Merged { count }) => format!("{count} merged generators"),
    }
}
