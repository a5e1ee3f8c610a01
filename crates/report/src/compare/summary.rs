//! A comparison in one sentence.

use super::{Comparison, MetricComparison, Role, StepComparison, Verdict};

/// Steps that the sentence names on either side; the others are counted.
const NAMED_MAX: usize = 3;

/// Where B is faster and where it is slower, the largest differences first, by headline metrics.
pub(super) fn sentence(comparison: &Comparison) -> String {
    let steps = &comparison.steps;
    if steps.is_empty() {
        return "nothing to compare: no step has figures on both sides".to_owned();
    }
    let all_are = |verdict| steps.iter().filter(|step| headlines(step).all(|metric| metric.verdict == verdict)).count();
    let (too_few, too_short) = (all_are(Verdict::TooFewRepetitions), all_are(Verdict::TooShort));
    if too_few + too_short == steps.len() {
        let few = format!("too few repetitions to compare {}; an interval needs 3 on each side", count(too_few));
        let brief = format!("too short to compare {}: runs took less than a second", count(too_short));
        let parts = [(too_few, few), (too_short, brief)].into_iter().filter(|(steps, _)| *steps > 0);
        return parts.map(|(_, part)| part).collect::<Vec<_>>().join("; ");
    }
    let (faster, slower) = (outstanding(steps, Verdict::Better), outstanding(steps, Verdict::Worse));
    let mut clauses = Vec::new();
    if !faster.is_empty() {
        clauses.push(format!("{} is faster in {}", comparison.b.label, list(&faster)));
    }
    if !slower.is_empty() {
        let subject = if faster.is_empty() { format!("{} is ", comparison.b.label) } else { String::new() };
        clauses.push(format!("{subject}slower in {}", list(&slower)));
    }
    let within_drift =
        steps.iter().filter(|step| headlines(step).any(|metric| metric.verdict == Verdict::WithinDrift)).count();
    let mut parts = Vec::new();
    if clauses.is_empty() {
        let beyond = if within_drift > 0 { "beyond the machine's drift " } else { "" };
        parts.push(format!("no significant difference {beyond}in {}", count(steps.len() - too_few - too_short)));
    } else {
        parts.push(clauses.join(", "));
        if within_drift > 0 {
            parts.push(format!("{} within the machine's drift", count(within_drift)));
        }
    }
    if too_few > 0 {
        parts.push(format!("{} with too few repetitions", count(too_few)));
    }
    if too_short > 0 {
        parts.push(format!("{} too short to compare", count(too_short)));
    }
    parts.join("; ")
}

fn headlines(step: &StepComparison) -> impl Iterator<Item = &MetricComparison> {
    step.metrics.iter().filter(|metric| metric.role == Role::Headline)
}

/// Every step with such a headline, and of its headlines the first (throughput before latency); the largest first.
fn outstanding(steps: &[StepComparison], verdict: Verdict) -> Vec<(&StepComparison, &MetricComparison)> {
    let first = |step| Some((step, headlines(step).find(|metric| metric.verdict == verdict)?));
    let mut found: Vec<_> = steps.iter().filter_map(first).collect();
    let size = |metric: &MetricComparison| metric.ratio.ratio.ln().abs();
    found.sort_by(|(_, one), (_, other)| size(other).total_cmp(&size(one)));
    found
}

fn list(found: &[(&StepComparison, &MetricComparison)]) -> String {
    let name = |(step, metric): &(&StepComparison, &MetricComparison)| {
        format!("{} ({} {})", step.step, metric.metric, metric.ratio)
    };
    let mut names: Vec<_> = found.iter().take(NAMED_MAX).map(name).collect();
    if found.len() > NAMED_MAX {
        names.push(format!("{} more", found.len() - NAMED_MAX));
    }
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// `1 step`, `2 steps`.
fn count(steps: usize) -> String {
    format!("{steps} {}", if steps == 1 { "step" } else { "steps" })
}
