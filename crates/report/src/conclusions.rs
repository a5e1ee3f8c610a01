//! The conclusions of a report, for programs: the words that the terminal and the page show.

use crate::recommendation;
use crate::result::{AllocationRecord, Badge, Report};
use crate::step_label;
use serde::Serialize;

/// A report with its conclusions. Reading it back takes the report alone: conclusions are drawn anew from the figures.
#[derive(Serialize)]
pub(crate) struct Concluded<'r> {
    #[serde(flatten)]
    report: &'r Report,
    conclusions: Conclusions,
}

#[derive(Serialize)]
struct Conclusions {
    /// As [`Report::verdict`].
    verdict: String,
    /// As [`Report::is_valid`].
    valid: bool,
    /// As [`Report::badges`].
    badges: Vec<Badge>,
    /// Everything that was found, the worst first.
    findings: Vec<String>,
    /// Which settings are the fastest, or why none is named.
    recommendations: Vec<String>,
    /// In the order of [`Report::steps`].
    steps: Vec<Row>,
    /// In the order of [`Report::allocations`].
    allocations: Vec<Row>,
}

/// The badges beside one row of figures.
#[derive(Serialize)]
struct Row {
    row: String,
    badges: Vec<Badge>,
}

impl<'r> Concluded<'r> {
    pub(crate) fn of(report: &'r Report) -> Self {
        let step = |step| Row { row: step_label::full(report, step), badges: step.badges() };
        let allocation = |record: &AllocationRecord| Row { row: record.label(), badges: record.badges() };
        let conclusions = Conclusions {
            verdict: report.verdict(),
            valid: report.is_valid(),
            badges: report.badges(),
            findings: report.flaws().iter().map(ToString::to_string).collect(),
            recommendations: recommendation::of_report(report),
            steps: report.steps.iter().map(step).collect(),
            allocations: report.allocations.iter().map(allocation).collect(),
        };
        Self { report, conclusions }
    }
}
