//! Which settings a matrix of dumps and restores speaks for.

use crate::number::figure;
use crate::result::{Report, Severity, Step};
use crate::step_label;
use bunko_statistics::{Estimate, Ratio, Significance};

/// Where there are too few repetitions to tell, differences up to this share of the fastest count as noise.
const NOISE: f64 = 0.05;
/// Settings that are named as being as fast, at most.
const NAMED_MAX: usize = 4;

/// One line for each phase that dumps or restores in several ways, on each target.
pub(crate) fn of_report(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for target in 0..report.targets.len() {
        for operation in ["dump", "restore"] {
            let is_one = |step: &&Step| step.target == target && step.operation == operation && is_believable(step);
            let mut phases: Vec<&str> = report.steps.iter().filter(is_one).map(|step| step.phase.as_str()).collect();
            phases.dedup();
            for phase in phases {
                let steps: Vec<&Step> = report.steps.iter().filter(is_one).filter(|step| step.phase == phase).collect();
                lines.extend(of_steps(report, phase, &steps));
            }
        }
    }
    lines
}

/// `fastest restore: workers 8: 312,000 docs/s; within noise of it: workers 4 (0.98 x)`.
fn of_steps(report: &Report, phase: &str, steps: &[&Step]) -> Option<String> {
    let mut ranked: Vec<(&Step, f64)> =
        steps.iter().filter_map(|step| Some((*step, Estimate::of(&rates(step))?.median))).collect();
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let (&(fastest, highest), others) = ranked.split_first()?;
    if others.is_empty() {
        return None;
    }
    let equals: Vec<String> = others
        .iter()
        .filter(|(step, rate)| is_within_noise(fastest, step, rate / highest))
        .map(|(step, rate)| format!("{} ({:.2} x)", settings(step), rate / highest))
        .collect();
    let named = equals.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
    let equals = match equals.len() {
        0 => "nothing else is within noise of it".to_owned(),
        1..=NAMED_MAX => format!("within noise of it: {named}"),
        count => format!("within noise of it: {named}; and {} more", count - NAMED_MAX),
    };
    let target = step_label::target(report, fastest).map_or(String::new(), |target| format!(" on {target}"));
    let basis = if has_intervals(fastest) { "" } else { " (too few repetitions for an interval: 5 % count as noise)" };
    Some(format!("fastest {phase}{target}: {}: {} docs/s; {equals}{basis}", settings(fastest), figure(highest)))
}

/// `compression zstd, workers 8`.
fn settings(step: &Step) -> String {
    let last = |setting: &str| setting.rsplit('.').next().unwrap_or_default().to_owned();
    let named: Vec<_> = step.variant.iter().map(|(setting, value)| format!("{} {value}", last(setting))).collect();
    named.join(", ")
}

fn is_within_noise(fastest: &Step, step: &Step, share: f64) -> bool {
    match Ratio::of(&rates(fastest), &rates(step)).map(|ratio| ratio.significance) {
        Some(Significance::Lower) => false,
        Some(Significance::Higher | Significance::NoDifference) => true,
        Some(Significance::TooFewSamples) | None => share >= 1.0 - NOISE,
    }
}

fn has_intervals(step: &Step) -> bool {
    Estimate::of(&rates(step)).is_some_and(|estimate| estimate.interval.is_some())
}

/// A restore that lost documents is not fast.
fn is_believable(step: &Step) -> bool {
    step.badges().iter().all(|badge| badge.severity != Severity::Invalid)
}

fn rates(step: &Step) -> Vec<f64> {
    step.measurements().map(|measurement| measurement.documents_per_second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::result::{Finding, Outcome};

    #[test]
    fn the_fastest_is_named_with_what_cannot_be_told_from_it() {
        let lines = of_report(&fixture::restores());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("fastest restore: compression zstd, workers 8: "), "{lines:?}");
        assert!(lines[0].contains("within noise of it: compression zstd, workers 4"), "{lines:?}");
        assert!(!lines[0].contains("workers 1 ") && !lines[0].contains("gzip"), "{lines:?}");
    }

    #[test]
    fn what_lost_documents_is_not_recommended() {
        let mut report = fixture::restores();
        let fastest = report.steps.last_mut().expect("there");
        for run in &mut fastest.runs {
            if let Outcome::Measured(measurement) = &mut run.outcome {
                let what = "documents in the collection".to_owned();
                measurement.findings.push(Finding::CountsDiffer { what, expected: 10, found: 9 });
            }
        }
        assert!(of_report(&report)[0].starts_with("fastest restore: compression zstd, workers 4: "));
    }

    #[test]
    fn single_runs_are_within_noise_of_each_other_by_a_share() {
        let mut report = fixture::restores();
        report.steps.iter_mut().for_each(|step| step.runs.truncate(1));
        assert!(of_report(&report)[0].ends_with("(too few repetitions for an interval: 5 % count as noise)"));
    }
}
