//! The settings that the figures of a matrix of dumps and restores recommend, if any.

use crate::compare::benjamini_hochberg;
use crate::number::figure;
use crate::result::{Report, Severity, Step};
use crate::step_label;
use bunko_statistics::{Estimate, Ratio, SAMPLES_MIN, Significance};

/// Settings that are named as being as fast, at most.
const NAMED_MAX: usize = 5;

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

/// `fastest restore: workers 8: 312,000 docs/s; every other setting is slower by more than chance explains`, or the
/// settings that cannot be told apart, or why nothing is recommended.
fn of_steps(report: &Report, phase: &str, steps: &[&Step]) -> Option<String> {
    let mut ranked: Vec<(&Step, f64)> =
        steps.iter().filter_map(|step| Some((*step, Estimate::of(&rates(step))?.median))).collect();
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let (&(fastest, highest), others) = ranked.split_first()?;
    if others.is_empty() {
        return None;
    }
    let target = step_label::target(report, fastest).map_or(String::new(), |target| format!(" on {target}"));
    if let Some(reason) = inconclusive(&ranked) {
        return Some(format!("nothing is recommended for {phase}{target}: {reason}"));
    }
    let named = |(step, rate): &(&Step, f64)| format!("{} ({} docs/s)", settings(step), figure(*rate));
    let equals = equals(fastest, others);
    if equals.is_empty() {
        return Some(format!(
            "fastest {phase}{target}: {}: {} docs/s; every other setting is slower by more than chance explains",
            settings(fastest),
            figure(highest)
        ));
    }
    let together: Vec<String> = std::iter::once(named(&ranked[0])).chain(equals.into_iter().map(named)).collect();
    let more = match together.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(format!(
        "fastest {phase}{target}: not one setting but {} that the repetitions cannot tell apart: {}{more}",
        together.len(),
        together.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ")
    ))
}

/// Why these figures allow no recommendation: a setting that was tried too seldom or too briefly may be the fastest, or
/// may only seem so.
fn inconclusive(ranked: &[(&Step, f64)]) -> Option<String> {
    let count = |is_it: &dyn Fn(&Step) -> bool| ranked.iter().filter(|(step, _)| is_it(step)).count();
    let reasons = [
        (count(&|step| step.measurements().count() == 1), "with a single run"),
        (count(&|step| (2..SAMPLES_MIN).contains(&step.measurements().count())), "with two runs"),
        (count(&Step::is_brief), "with runs shorter than a second"),
    ];
    let found: Vec<String> =
        reasons.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    (!found.is_empty()).then(|| format!("of {} settings, {}", ranked.len(), found.join(", ")))
}

/// The settings whose difference from the fastest chance may explain. Among many settings some differ by chance, so the
/// differences are judged together, as those of a comparison are.
fn equals<'r, 's>(fastest: &Step, others: &'r [(&'s Step, f64)]) -> Vec<&'r (&'s Step, f64)> {
    let ratios: Vec<Option<Ratio>> = others.iter().map(|(step, _)| Ratio::of(&rates(fastest), &rates(step))).collect();
    let chance = |ratio: &Ratio| match ratio.significance {
        Significance::Lower => ratio.p_value.unwrap_or(1.0),
        Significance::Higher | Significance::NoDifference | Significance::TooFewSamples => 1.0,
    };
    let limit = benjamini_hochberg(ratios.iter().flatten().map(chance).collect());
    let is_slower = |ratio: &Ratio| limit.is_some_and(|limit| chance(ratio) <= limit);
    // A rate of 0 has no ratio, and is slower than any other.
    let is_equal = |ratio: &Option<Ratio>| ratio.as_ref().is_some_and(|ratio| !is_slower(ratio));
    others.iter().zip(&ratios).filter(|(_, ratio)| is_equal(ratio)).map(|(other, _)| other).collect()
}

/// `compression zstd, workers 8`.
fn settings(step: &Step) -> String {
    let last = |setting: &str| setting.rsplit('.').next().unwrap_or_default().to_owned();
    let named: Vec<_> = step.variant.iter().map(|(setting, value)| format!("{} {value}", last(setting))).collect();
    named.join(", ")
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
    fn settings_that_cannot_be_told_apart_are_named_together() {
        let lines = of_report(&fixture::restores());
        assert_eq!(
            lines,
            [
                "fastest restore: not one setting but 2 that the repetitions cannot tell apart: compression zstd, workers 8 \
              (200,000 docs/s); compression zstd, workers 4 (198,000 docs/s)"
            ]
        );
    }

    #[test]
    fn a_setting_faster_than_all_others_is_the_fastest() {
        let mut report = fixture::restores();
        for run in &mut report.steps[2].runs {
            if let Outcome::Measured(measurement) = &mut run.outcome {
                measurement.documents_per_second *= 0.5;
            }
        }
        let lines = of_report(&report);
        let expected = "fastest restore: compression zstd, workers 8: 200,000 docs/s; every other setting is slower by more \
                        than chance explains";
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn a_setting_that_lost_documents_is_not_recommended() {
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

    /// Whatever the figures are, no setting is called the fastest, and none is said to be within noise of another.
    #[test]
    fn few_or_brief_runs_recommend_nothing() {
        for (runs, seconds, expected) in [
            (1, 2.0, "of 4 settings, 4 with a single run"),
            (2, 2.0, "of 4 settings, 4 with two runs"),
            (3, 0.9, "of 4 settings, 4 with runs shorter than a second"),
            (1, 0.1, "of 4 settings, 4 with a single run, 4 with runs shorter than a second"),
        ] {
            let mut report = fixture::restores();
            for step in &mut report.steps {
                step.runs.truncate(runs);
                for run in &mut step.runs {
                    if let Outcome::Measured(measurement) = &mut run.outcome {
                        measurement.elapsed_seconds = seconds;
                    }
                }
            }
            assert_eq!(of_report(&report), [format!("nothing is recommended for restore: {expected}")]);
        }
        // One setting that was tried once may be the fastest.
        let mut report = fixture::restores();
        report.steps[1].runs.truncate(1);
        assert_eq!(of_report(&report), ["nothing is recommended for restore: of 4 settings, 1 with a single run"]);
    }
}
