//! A history for the terminal.

use super::{Change, Effect, History, MachineChange, MetricHistory, ScenarioHistory, sparkline};
use crate::number::{self, figure, utc};
use crate::text::harmless;
use std::fmt::{self, Write as _};

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text)?;
        f.write_str(&harmless(&text))
    }
}

impl History {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "{}", self.summary)?;
        self.scenarios.iter().try_for_each(|scenario| scenario.write(out))?;
        if !self.left_out.is_empty() {
            writeln!(out)?;
        }
        self.left_out.iter().try_for_each(|left_out| writeln!(out, "left out: {}: {}", left_out.file, left_out.reason))
    }
}

impl ScenarioHistory {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "\n{}: {}", self.title(), self.span())?;
        if !self.control.values.is_empty() {
            write_metrics(out, std::slice::from_ref(&self.control))?;
        }
        self.steps.iter().try_for_each(|step| {
            writeln!(out, "\n  {}", step.step)?;
            write_metrics(out, &step.metrics)
        })
    }

    /// The number of reports, their first and last time, and the number of runs that were left out.
    pub(crate) fn span(&self) -> String {
        let (first, last) = (&self.reports[0], &self.reports[self.reports.len() - 1]);
        let invalid = match self.invalid_runs {
            0 => String::new(),
            1 => ", 1 invalid run left out".to_owned(),
            runs => format!(", {runs} invalid runs left out"),
        };
        let reports = self.reports.len();
        format!("{reports} reports, {} to {}{invalid}", utc(first.started_at_ms), utc(last.started_at_ms))
    }
}

/// A row for each metric, with its changes below it.
fn write_metrics(out: &mut String, metrics: &[MetricHistory]) -> fmt::Result {
    let rows: Vec<_> = metrics.iter().map(MetricHistory::row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [of_metric, of_line, of_first, of_last] = std::array::from_fn(width);
    for ([metric, line, first, last], history) in rows.iter().zip(metrics) {
        writeln!(out, "    {metric:of_metric$}  {line:of_line$}  {first:>of_first$} .. {last:>of_last$}")?;
        for change in &history.changes {
            writeln!(out, "      {}  {}", change.in_words(), change.file)?;
            change.besides.iter().try_for_each(|line| writeln!(out, "        {line}"))?;
        }
    }
    Ok(())
}

impl MetricHistory {
    /// Name, line, first and last value.
    fn row(&self) -> [String; 4] {
        let medians: Vec<_> = self.values.iter().map(|value| value.median).collect();
        let shown = |value: Option<&f64>| value.map_or_else(String::new, |value| figure(*value));
        [self.metric.to_owned(), sparkline::of(&medians), shown(medians.first()), shown(medians.last())]
    }
}

impl Change {
    /// `2025-12-03 15:00:00 UTC  31,000 -> 27,900  0.90x  worse`
    fn in_words(&self) -> String {
        let Self { started_at_ms, before, after, ratio, .. } = self;
        let levels = format!("{} -> {}", figure(*before), figure(*after));
        let verdict = self.verdict();
        format!("{}  {levels}  {}x  {verdict}", utc(*started_at_ms), number::ratio(*ratio))
    }

    /// The direction of the change, and the change of the machine.
    pub(crate) fn verdict(&self) -> String {
        let effect = match self.effect {
            Effect::Better => "better",
            Effect::Worse => "worse",
            Effect::Differs => "differs",
        };
        let cost = |cost: f64| format!("generator's cost {}x", number::ratio(cost));
        match self.machine {
            MachineChange::None => effect.to_owned(),
            MachineChange::Replaced => format!("{effect}, but the machine changed (another processor)"),
            MachineChange::Explains { generator_cost } => {
                format!("{effect}, but the machine changed ({})", cost(generator_cost))
            }
            MachineChange::ExplainsNot { generator_cost } => {
                format!("{effect}; the machine's change ({}) does not explain it", cost(generator_cost))
            }
        }
    }
}
