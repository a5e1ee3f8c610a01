//! The metrics of a comparison.

use super::{MetricComparison, Pairing, Verdict};
use crate::result::{Measurement, Run, Step};
use bunko_statistics::{Estimate, Ratio};
use serde::Serialize;

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Throughput.
    HigherIsBetter,
    /// Latency and cost.
    LowerIsBetter,
}

/// The role of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Named in [`super::Comparison::summary`].
    Headline,
    /// Explains the headline.
    Detail,
    /// Independent of the server.
    Control,
}

/// A figure of every run.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) direction: Direction,
    figure: fn(&Measurement) -> Option<f64>,
}

/// The generator's processor time per request, which shows the machine's speed.
pub(super) const GENERATOR_COST: &str = "generator us/request";

/// The server's processor time per document.
pub(crate) const SERVER_COST: &str = "server us/document";

pub(crate) const METRICS: [Metric; 6] = [
    Metric {
        name: "documents/s",
        role: Role::Headline,
        direction: Direction::HigherIsBetter,
        figure: |run| Some(run.documents_per_second),
    },
    Metric {
        name: "p50 us",
        role: Role::Detail,
        direction: Direction::LowerIsBetter,
        figure: |run| run.latency.p50_us,
    },
    Metric {
        name: "p99 us",
        role: Role::Headline,
        direction: Direction::LowerIsBetter,
        figure: |run| run.latency.p99_us,
    },
    Metric {
        name: "p99.9 us",
        role: Role::Detail,
        direction: Direction::LowerIsBetter,
        figure: |run| run.latency.p999_us,
    },
    Metric {
        name: SERVER_COST,
        role: Role::Detail,
        direction: Direction::LowerIsBetter,
        figure: |run| Some(run.server_cpu_seconds? * 1e6 / run.documents as f64),
    },
    Metric {
        name: GENERATOR_COST,
        role: Role::Control,
        direction: Direction::LowerIsBetter,
        figure: |run| Some(run.generator_cpu_seconds * 1e6 / run.requests as f64),
    },
];

/// Compares the metrics that both steps have, without verdicts.
pub(super) fn compare_all(a: &Step, b: &Step, pairing: Pairing) -> Vec<MetricComparison> {
    METRICS.iter().filter_map(|metric| compare_one(metric, a, b, pairing)).collect()
}

fn compare_one(metric: &Metric, a: &Step, b: &Step, pairing: Pairing) -> Option<MetricComparison> {
    let (of_a, of_b) = match pairing {
        Pairing::Independent => (samples(metric, a), samples(metric, b)),
        Pairing::ByRepetition => pairs(metric, a, b),
    };
    let verdict = if a.is_brief() || b.is_brief() { Verdict::TooShort } else { Verdict::NoDifference };
    let ratio = match pairing {
        Pairing::Independent => Ratio::of(&of_a, &of_b)?,
        Pairing::ByRepetition => Ratio::paired(&of_a, &of_b)?,
    };
    Some(MetricComparison {
        metric: metric.name,
        role: metric.role,
        direction: metric.direction,
        a: Estimate::of(&of_a)?,
        b: Estimate::of(&of_b)?,
        ratio,
        verdict,
    })
}

fn samples(metric: &Metric, step: &Step) -> Vec<f64> {
    step.runs.iter().filter_map(|run| sample(metric, run)).collect()
}

/// The samples of the repetitions that both steps have.
fn pairs(metric: &Metric, a: &Step, b: &Step) -> (Vec<f64>, Vec<f64>) {
    let pair = |run: &Run| {
        let counterpart = b.runs.iter().find(|other| other.repetition == run.repetition)?;
        Some((sample(metric, run)?, sample(metric, counterpart)?))
    };
    a.runs.iter().filter_map(pair).unzip()
}

/// A run's figure. Zero or a division by zero has no ratio and is not a sample.
pub(crate) fn sample(metric: &Metric, run: &Run) -> Option<f64> {
    (metric.figure)(run.measurement()?).filter(|figure| figure.is_finite() && *figure > 0.0)
}
