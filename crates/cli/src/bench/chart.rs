//! `bunko bench chart`.

use bunko_bench::Report;
use bunko_report::html;
use bunko_report::result::{Measurement, Step};
use std::path::Path;
use std::process::ExitCode;

/// Draws a phase's first run into a file.
pub fn draw(report: &Path, phase: Option<&str>, target: Option<&str>, output: &Path) -> Result<ExitCode, String> {
    let report = Report::read(report).map_err(|error| error.to_string())?;
    let target = match target {
        None => 0,
        Some(label) => {
            let labels = || report.targets.iter().map(|target| target.label.as_str());
            let known = labels().collect::<Vec<_>>().join(", ");
            let place = labels().position(|other| other == label);
            place.ok_or_else(|| format!("--target: there is no '{label}'; there are {known}"))?
        }
    };
    let phase = match phase {
        Some(phase) => phase,
        None => longest(&report, target).ok_or("no phase of that target has figures")?,
    };
    let svg = html::render_chart(&report, target, phase);
    let svg = svg.ok_or_else(|| format!("--phase: '{phase}' has no figures on that target"))?;
    std::fs::write(output, svg).map_err(|error| format!("cannot write {}: {error}", output.display()))?;
    eprintln!("chart of {phase}: {}", output.display());
    Ok(ExitCode::SUCCESS)
}

/// The phase whose first run took longest.
fn longest(report: &Report, target: usize) -> Option<&str> {
    let seconds = |step: &Step| step.measurements().next().map_or(0.0, |run: &Measurement| run.elapsed_seconds);
    let steps = report.steps.iter().filter(|step| step.target == target && seconds(step) > 0.0);
    steps.max_by(|one, other| seconds(one).total_cmp(&seconds(other))).map(|step| step.phase.as_str())
}
