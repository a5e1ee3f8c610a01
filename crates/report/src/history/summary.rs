//! A history in one sentence.

use super::provenance::SAME_TIME_REPORTS;
use super::{Change, Effect, Ending, MetricHistory, REPORTS_MIN, ScenarioHistory, StepHistory, VALUES_MIN};
use crate::number::{self, utc};

/// Maximum number of steps that the sentence names per direction; further ones are counted.
const NAMED_MAX: usize = 3;

/// A change, with its step and metric.
type Placed<'a> = (&'a StepHistory, &'a MetricHistory, &'a Change);

pub(super) fn of_all(scenarios: &[ScenarioHistory]) -> String {
    if scenarios.is_empty() {
        return format!("no history: it needs {REPORTS_MIN} reports of the same work");
    }
    scenarios.iter().map(|scenario| scenario.summary.as_str()).collect::<Vec<_>>().join("; ")
}

/// The meaning of the newest change, and the sentence about it.
pub(super) fn of_scenario(history: &ScenarioHistory) -> (Ending, String) {
    let named = |rest: String| format!("{}: {rest}", history.title());
    let reports = count(history.reports.len(), "report", "reports");
    let longest = metrics(history).map(|(_, metric)| metric.values.len()).max().unwrap_or_default();
    if longest < VALUES_MIN {
        let rest = format!("too few valid figures to find a change: {longest} of {VALUES_MIN}");
        return (Ending::TooFewReports, named(rest));
    }
    let (of_machine, mut others): (Vec<Placed<'_>>, Vec<_>) =
        changes(history).partition(|(_, _, change)| change.is_of_machine());
    let Some(newest) = others.iter().map(|(_, _, change)| change.report).max() else {
        return (Ending::NoChange, named(format!("no change in {reports}{}", when_machine_changed(&of_machine))));
    };
    let all = others.len();
    others.retain(|(_, _, change)| change.report + SAME_TIME_REPORTS >= newest);
    let earlier = all - others.len();
    let (worse, better): (Vec<_>, Vec<_>) = others.iter().partition(|(_, _, change)| change.effect == Effect::Worse);
    let since = others.iter().map(|(_, _, change)| change.started_at_ms).min().unwrap_or_default();
    let mut words = Vec::new();
    if !worse.is_empty() {
        words.push(format!("worse since {}: {}", utc(since), list(&worse)));
    }
    if !better.is_empty() {
        let since = if worse.is_empty() { format!(" since {}", utc(since)) } else { String::new() };
        words.push(format!("better{since}: {}", list(&better)));
    }
    let before = match earlier {
        0 => String::new(),
        _ => format!(", {} before", count(earlier, "change", "changes")),
    };
    let ending = if worse.is_empty() { Ending::Better } else { Ending::Worse };
    (ending, named(format!("{}{before}{}", words.join(", "), when_machine_changed(&of_machine))))
}

impl ScenarioHistory {
    /// The scenario's name, and the settings that distinguish the history from others of that name.
    pub(crate) fn title(&self) -> String {
        if self.settings.is_empty() {
            return self.scenario.clone();
        }
        format!("{} with {}", self.scenario, self.settings.join(", "))
    }
}

fn when_machine_changed(of_machine: &[Placed<'_>]) -> String {
    match of_machine.len() {
        0 => String::new(),
        changes => format!(", besides {} with the machine's own", count(changes, "change", "changes")),
    }
}

fn metrics(history: &ScenarioHistory) -> impl Iterator<Item = (&StepHistory, &MetricHistory)> {
    history.steps.iter().flat_map(|step| step.metrics.iter().map(move |metric| (step, metric)))
}

fn changes(history: &ScenarioHistory) -> impl Iterator<Item = Placed<'_>> {
    metrics(history).flat_map(|(step, metric)| metric.changes.iter().map(move |change| (step, metric, change)))
}

/// Each step with its first changed metric, throughput first; the largest changes first.
fn list(changes: &[&Placed<'_>]) -> String {
    let mut steps = changes.to_vec();
    steps.dedup_by_key(|(step, _, _)| std::ptr::from_ref(*step));
    let size = |change: &Change| change.ratio.ln().abs();
    steps.sort_by(|(_, _, one), (_, _, other)| size(other).total_cmp(&size(one)));
    let name = |(step, metric, change): &&Placed<'_>| {
        format!("{} ({} {}x)", step.step, metric.metric, number::ratio(change.ratio))
    };
    let mut names: Vec<_> = steps.iter().take(NAMED_MAX).map(name).collect();
    if steps.len() > NAMED_MAX {
        names.push(format!("{} more", steps.len() - NAMED_MAX));
    }
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

fn count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
