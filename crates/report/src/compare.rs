//! Whether B is faster than A.
//!
//! Compares two reports of the same scenario, or two targets of one report, by step and metric. The samples are the
//! repetitions. With many steps and metrics, some differ by chance: [`Comparison::summary`] names only differences that
//! remain significant among so many (see the module `judgement`).

mod caution;
mod display;
mod drift;
mod judgement;
mod metric;
mod settings;
mod summary;

pub(crate) use drift::exceeded as exceeds_drift;
pub(crate) use judgement::{FALSE_DISCOVERY_RATE, PROCEDURE, benjamini_hochberg};
pub use metric::{Direction, Role};
pub(crate) use metric::{METRICS, Metric, SERVER_COST, sample};
pub(crate) use settings::{Difference, differences};

use crate::error::ReportError;
use crate::result::{Report, Step, TargetRecord};
use crate::{number, step_label, text};
use bunko_statistics::{Estimate, Ratio};
use serde::Serialize;
use std::fmt;

/// B against A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// One sentence.
    pub summary: String,
    /// Facts that a reader must know before believing the comparison.
    pub cautions: Vec<String>,
    /// The first side, the denominator of ratios.
    pub a: Side,
    /// The second side.
    pub b: Side,
    /// How repetitions of A and B are paired.
    pub pairing: Pairing,
    /// The generator's processor time per request in B over that in A: how much slower the machine ran a program that
    /// did the same work. `None` where repetitions are paired, where the generators differ, or where the cost is
    /// unknown.
    pub drift: Option<f64>,
    /// The steps with figures on both sides, in A's order.
    pub steps: Vec<StepComparison>,
    /// Steps of A without a counterpart in B.
    pub only_in_a: Vec<String>,
    /// Steps of B without a counterpart in A.
    pub only_in_b: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// `A`, `B`, or the target's label.
    pub label: String,
    /// Engine, version and address; for a report also the time.
    pub description: String,
}

/// How samples of A and B are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// Not paired: all of A ran before all of B, or on another day.
    Independent,
    /// The n-th of A and the n-th of B ran right after each other, so a change of the machine affects both.
    ByRepetition,
}

/// One step on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepComparison {
    /// The step's name in reports.
    pub step: String,
    /// As [`Step::variant`].
    pub variant: Vec<(String, String)>,
    /// As [`Step::phase`].
    pub phase: String,
    /// As [`Step::operation`].
    pub operation: String,
    /// As [`Step::connections`].
    pub connections: usize,
    /// As [`Step::in_flight`].
    pub in_flight: usize,
    /// The metrics that both sides have.
    pub metrics: Vec<MetricComparison>,
}

/// One metric of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricComparison {
    /// Its name with the unit: `documents/s`, `p99 us`.
    pub metric: &'static str,
    /// The role of the metric.
    pub role: Role,
    /// The better direction.
    pub direction: Direction,
    /// Median of A's repetitions.
    pub a: Estimate,
    /// Median of B's repetitions.
    pub b: Estimate,
    /// B over A, with its own 95 % interval.
    pub ratio: Ratio,
    /// The meaning of the ratio among all metrics.
    pub verdict: Verdict,
}

/// The meaning of a metric's ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is better than A.
    Better,
    /// B is worse than A.
    Worse,
    /// B differs from A in a metric that should not depend on the server.
    Differs,
    /// Chance may explain the difference.
    NoDifference,
    /// A change of the machine may explain the difference.
    WithinDrift,
    /// A side has fewer repetitions than an interval needs.
    TooFewRepetitions,
    /// A side has runs shorter than a second, from which nothing can be concluded for longer ones.
    TooShort,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Differs => "differs",
            Self::NoDifference => "no significant difference",
            Self::WithinDrift => "within the machine's drift",
            Self::TooFewRepetitions => "too few repetitions",
            Self::TooShort => "too short",
        })
    }
}

/// Compares two runs of one scenario. Steps match where target, variant, phase, operation and concurrency are equal.
///
/// # Errors
/// [`ReportError::ScenariosDiffer`] if they did different work: any setting differs except the seed, the number of
/// repetitions and the prose.
pub fn compare(a: &Report, b: &Report) -> Result<Comparison, ReportError> {
    if a.scenario.hash != b.scenario.hash {
        let settings = settings::in_words(&a.scenario.resolved, &b.scenario.resolved);
        if !settings.is_empty() {
            return Err(ReportError::ScenariosDiffer { settings });
        }
    }
    let same_step = |one: &Step, other: &Step| one.target == other.target && same_work(one, other);
    let matched = match_steps(a.steps.iter().collect(), b.steps.iter().collect(), same_step);
    let steps = compare_steps(&matched.pairs, |step| step_label::full(a, step), Pairing::Independent);
    let drift = if a.lab_version == b.lab_version { drift::of_machine(&steps) } else { None };
    let mut cautions = caution::of_reports(a, b);
    cautions.extend(drift.and_then(drift::caution));
    cautions.extend(caution::of_steps(&matched.pairs, ("A", "B")));
    let names = |report: &Report, steps: &[&Step]| steps.iter().map(|step| step_label::full(report, step)).collect();
    Ok(conclude(Comparison {
        summary: String::new(),
        cautions,
        a: Side::of_report("A", a),
        b: Side::of_report("B", b),
        pairing: Pairing::Independent,
        drift,
        steps,
        only_in_a: names(a, &matched.only_in_a),
        only_in_b: names(b, &matched.only_in_b),
    }))
}

/// Compares two targets of one run whose repetitions were interleaved (A B A B): the n-th of A with the n-th of B, so
/// that a machine that becomes slower affects both.
///
/// # Panics
/// If `a` or `b` is not an index into [`Report::targets`].
pub fn compare_targets(report: &Report, a: usize, b: usize) -> Comparison {
    let steps_of = |target: usize| report.steps.iter().filter(|step| step.target == target).collect();
    let matched = match_steps(steps_of(a), steps_of(b), same_work);
    let (target_a, target_b) = (&report.targets[a], &report.targets[b]);
    let mut cautions = caution::of_run(report, (target_a, target_b));
    cautions.extend(caution::of_steps(&matched.pairs, (&target_a.label, &target_b.label)));
    let names = |steps: &[&Step]| steps.iter().map(|step| step.label()).collect();
    conclude(Comparison {
        summary: String::new(),
        cautions,
        a: Side::of_target(target_a),
        b: Side::of_target(target_b),
        pairing: Pairing::ByRepetition,
        drift: None,
        steps: compare_steps(&matched.pairs, Step::label, Pairing::ByRepetition),
        only_in_a: names(&matched.only_in_a),
        only_in_b: names(&matched.only_in_b),
    })
}

fn conclude(mut comparison: Comparison) -> Comparison {
    judgement::judge(&mut comparison.steps, comparison.drift);
    comparison.summary = summary::sentence(&comparison);
    comparison
}

/// The steps of A with their counterparts in B.
struct Matched<'a> {
    pairs: Vec<(&'a Step, &'a Step)>,
    only_in_a: Vec<&'a Step>,
    only_in_b: Vec<&'a Step>,
}

fn match_steps<'a>(a: Vec<&'a Step>, b: Vec<&'a Step>, same_step: impl Fn(&Step, &Step) -> bool) -> Matched<'a> {
    let mut matched = Matched { pairs: Vec::new(), only_in_a: Vec::new(), only_in_b: b };
    for step in a {
        match matched.only_in_b.iter().position(|other| same_step(step, other)) {
            Some(position) => matched.pairs.push((step, matched.only_in_b.remove(position))),
            None => matched.only_in_a.push(step),
        }
    }
    matched
}

fn same_work(one: &Step, other: &Step) -> bool {
    (&one.variant, &one.phase, &one.operation, one.connections, one.in_flight)
        == (&other.variant, &other.phase, &other.operation, other.connections, other.in_flight)
}

/// Compares the pairs in which both steps have figures.
fn compare_steps(pairs: &[(&Step, &Step)], label: impl Fn(&Step) -> String, pairing: Pairing) -> Vec<StepComparison> {
    let compare = |&(a, b): &(&Step, &Step)| StepComparison {
        step: label(a),
        variant: a.variant.clone(),
        phase: a.phase.clone(),
        operation: a.operation.clone(),
        connections: a.connections,
        in_flight: a.in_flight,
        metrics: metric::compare_all(a, b, pairing),
    };
    pairs.iter().map(compare).filter(|step| !step.metrics.is_empty()).collect()
}

impl Side {
    fn of_report(label: &str, report: &Report) -> Self {
        let targets = report.targets.iter().map(text::server).collect::<Vec<_>>().join("; ");
        Self { label: label.to_owned(), description: format!("{targets}, {}", number::utc(report.started_at_ms)) }
    }

    fn of_target(target: &TargetRecord) -> Self {
        Self { label: target.label.clone(), description: text::server(target) }
    }
}
