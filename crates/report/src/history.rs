//! Figures over time: the reports of one scenario in the order of their runs, and the places where the level of a
//! step's figures changed.
//!
//! Each report gives one value, the median of its valid repetitions. With many steps and metrics some seem to change by
//! chance, so they are judged together, as in a comparison (see `change`). The generator's own cost per request is the
//! control: it should not depend on the server, so where it also changes, the machine has changed.

mod change;
mod display;
mod grouping;
mod provenance;
mod series;
mod sparkline;
mod summary;

pub use change::{Change, Effect, MachineChange};

use crate::compare::{Direction, Role};
use crate::error::ReportError;
use crate::result::Report;
use bunko_statistics::ChangePoint;
use serde::Serialize;
use std::path::PathBuf;

/// Minimum number of reports of the same work for a history.
pub const REPORTS_MIN: usize = 3;
/// Minimum number of valid values for a change of a metric.
pub const VALUES_MIN: usize = ChangePoint::SERIES_MIN;

/// Reports over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// One sentence.
    pub summary: String,
    /// The meaning of the newest change of any scenario.
    pub ending: Ending,
    /// One history for each kind of work with enough reports.
    pub scenarios: Vec<ScenarioHistory>,
    /// Reports that are in no history.
    pub left_out: Vec<LeftOut>,
}

/// How a history ends. Changes that the machine may explain do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Not enough reports to say anything.
    TooFewReports,
    /// Nothing changed.
    NoChange,
    /// The newest change is for the better.
    Better,
    /// The newest change is for the worse, or one of several simultaneous ones is.
    Worse,
}

/// Reports of the same work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioHistory {
    /// The scenario's name.
    pub scenario: String,
    /// If several histories have this name: the settings in which this one differs from the one with most reports.
    pub settings: Vec<String>,
    /// One sentence.
    pub summary: String,
    /// How the history ends.
    pub ending: Ending,
    /// Oldest first.
    pub reports: Vec<ReportRecord>,
    /// Number of runs with invalid figures, which are left out.
    pub invalid_runs: usize,
    /// The generator's cost per request, relative to the first report; the median of all steps. The machine affects all
    /// steps, while a server that behaves differently in one step can cost the generator more there only. No values
    /// where the cost is unknown.
    pub control: MetricHistory,
    /// Histories of the steps, in the order of the newest report.
    pub steps: Vec<StepHistory>,
}

/// One report of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportRecord {
    /// The file that it was read from.
    pub file: String,
    /// As [`Report::started_at_ms`].
    pub started_at_ms: u64,
    /// As [`Report::lab_version`].
    pub lab_version: String,
}

/// A step over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepHistory {
    /// The step's name in reports.
    pub step: String,
    /// The target's label.
    pub target: String,
    /// As [`crate::result::Step::variant`].
    pub variant: Vec<(String, String)>,
    /// As [`crate::result::Step::phase`].
    pub phase: String,
    /// As [`crate::result::Step::operation`].
    pub operation: String,
    /// As [`crate::result::Step::connections`].
    pub connections: usize,
    /// As [`crate::result::Step::in_flight`].
    pub in_flight: usize,
    /// Throughput, latency and the server's cost, as far as reports have them.
    pub metrics: Vec<MetricHistory>,
}

/// A metric of a step over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricHistory {
    /// Its name with the unit: `documents/s`, `p99 us`.
    pub metric: &'static str,
    /// The role of the metric.
    pub role: Role,
    /// The better direction.
    pub direction: Direction,
    /// One for each report that has a valid figure, oldest first.
    pub values: Vec<Value>,
    /// Oldest first.
    pub changes: Vec<Change>,
}

/// A report's figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Value {
    /// Index into [`ScenarioHistory::reports`].
    pub report: usize,
    /// Median of its valid repetitions.
    pub median: f64,
}

/// A report that is in no history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The report's file.
    pub file: String,
    /// The reason, in words.
    pub reason: String,
}

/// Reports of the same work with their files, oldest first.
type Members<'a> = [&'a (PathBuf, Report)];

/// The history of reports in any order. Takes quadratic time in the number of reports of the same work.
///
/// # Errors
/// [`ReportError::NoReports`] for an empty list. Reports that do not belong together are no error: see
/// [`History::left_out`].
pub fn history(reports: &[(PathBuf, Report)]) -> Result<History, ReportError> {
    if reports.is_empty() {
        return Err(ReportError::NoReports);
    }
    let (groups, left_out) = grouping::by_work(reports);
    let scenarios: Vec<_> = groups.iter().map(of_group).collect();
    let ending = scenarios.iter().map(|scenario| scenario.ending).max().unwrap_or(Ending::TooFewReports);
    Ok(History { summary: summary::of_all(&scenarios), ending, scenarios, left_out })
}

fn of_group(group: &grouping::Group<'_>) -> ScenarioHistory {
    let record = |(file, report): &&(PathBuf, Report)| ReportRecord {
        file: file.display().to_string(),
        started_at_ms: report.started_at_ms,
        lab_version: report.lab_version.clone(),
    };
    let (mut steps, mut control) = series::collect(&group.members);
    change::judge(&mut steps, &mut control, &group.members);
    let mut scenario = ScenarioHistory {
        scenario: group.members[0].1.scenario.name.clone(),
        settings: group.settings.clone(),
        summary: String::new(),
        ending: Ending::NoChange,
        reports: group.members.iter().map(record).collect(),
        invalid_runs: series::invalid_runs(&group.members),
        control,
        steps,
    };
    (scenario.ending, scenario.summary) = summary::of_scenario(&scenario);
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_order_of_reports_does_not_matter() {
        let mut nights = fixture::nightly();
        let found = history(&nights).unwrap();
        nights.reverse();
        nights.swap(3, 8);
        assert!(history(&nights).unwrap() == found);
        assert_eq!(found.ending, Ending::Worse);
    }
}
