//! A comparison for the terminal.

use super::{Comparison, Pairing, StepComparison, judgement};
use crate::number::figure;
use crate::text::harmless;
use std::fmt::{self, Write as _};

const HEADINGS: [&str; 6] = ["step", "metric", "A", "B", "B/A", "verdict"];

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text)?;
        f.write_str(&harmless(&text))
    }
}

impl Comparison {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "{}", self.summary)?;
        for side in [&self.a, &self.b] {
            writeln!(out, "  {}: {}", side.label, side.description)?;
        }
        self.cautions.iter().try_for_each(|caution| writeln!(out, "caution: {caution}"))?;
        for (side, steps) in [(&self.a, &self.only_in_a), (&self.b, &self.only_in_b)] {
            steps.iter().try_for_each(|step| writeln!(out, "only in {}: {step}", side.label))?;
        }
        if self.steps.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        write_table(out, &self.rows())?;
        let samples = match self.pairing {
            Pairing::Independent => "samples are the repetitions",
            Pairing::ByRepetition => "samples are the ratios of interleaved repetitions",
        };
        writeln!(out, "{samples}; intervals: 95 %, each on its own; verdicts: {}", judgement::PROCEDURE)
    }

    fn rows(&self) -> Vec<[String; 6]> {
        let mut headings = HEADINGS.map(str::to_owned);
        headings[2].clone_from(&self.a.label);
        headings[3].clone_from(&self.b.label);
        headings[4] = format!("{}/{}", self.b.label, self.a.label);
        let mut rows = vec![headings];
        self.steps.iter().for_each(|step| rows.extend(rows_of(step)));
        rows
    }
}

/// A step's metrics; only the first row names the step.
fn rows_of(step: &StepComparison) -> impl Iterator<Item = [String; 6]> {
    step.metrics.iter().enumerate().map(|(index, metric)| {
        let name = if index == 0 { step.step.clone() } else { String::new() };
        let (a, b) = (figure(metric.a.median), figure(metric.b.median));
        [name, metric.metric.to_owned(), a, b, metric.ratio.to_string(), metric.verdict.to_string()]
    })
}

/// Writes rows with words aligned to the left and figures to the right.
fn write_table(out: &mut String, rows: &[[String; 6]]) -> fmt::Result {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 6] = std::array::from_fn(width);
    for [step, metric, a, b, ratio, verdict] in rows {
        let [of_step, of_metric, of_a, of_b, of_ratio, _] = widths;
        writeln!(out, "{step:of_step$}  {metric:of_metric$}  {a:>of_a$}  {b:>of_b$}  {ratio:>of_ratio$}  {verdict}")?;
    }
    Ok(())
}
