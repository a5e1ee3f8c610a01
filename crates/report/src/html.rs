//! The report as one file for a browser: it loads nothing, and without scripts it still says everything but the charts.

mod allocation;
mod badge;
mod charts;
mod comparison;
mod embedded;
mod heat_map;
mod history;
mod markup;
mod page;
mod parts;
mod provenance;
mod ratio_axis;
mod steps;
mod still;
mod storage;
mod verdict;

use crate::compare::Comparison;
use crate::history::History;
use crate::result::Report;
use markup::Markup;
use page::{Page, REPORT_SCRIPT, Section};

/// Makes a section's contents; none where the report has nothing for it.
type Make = fn(&Report) -> Markup;

/// Source expressions of a content security policy for the scripts of all pages of this version.
pub fn script_sources() -> String {
    page::script_sources()
}

/// Renders a report. The file is as large as its per-second figures: about 0.6 kB for each second, plus 90 kB.
pub fn render(report: &Report) -> String {
    let sections: [(&str, &str, Make); 12] = [
        ("steps", "Steps", steps::section),
        ("operations", "Operations of mixed phases", parts::section),
        ("findings", "Findings", verdict::findings),
        ("percentiles", "Percentiles", charts::percentiles),
        ("seconds", "Second by second", charts::seconds),
        ("matrix", "Matrix", heat_map::section),
        ("storage", "Storage", storage::section),
        ("allocation", "File allocation", allocation::section),
        ("environment", "Environment", provenance::environment),
        ("repeat", "Repeat", provenance::repetition),
        ("scenario", "Scenario", provenance::scenario),
        ("raw", "Raw data", provenance::raw),
    ];
    let made = sections.into_iter().map(|(id, title, make)| Section {
        id: id.to_owned(),
        title: title.to_owned(),
        contents: make(report),
    });
    let page = Page {
        title: format!("{}: benchmark report", report.scenario.name),
        header: verdict::header(report),
        sections: made.filter(|section| !section.contents.is_empty()).collect(),
        footer: format!("Written by Bunko's performance lab, version {}. Charts: uPlot, MIT.", report.lab_version),
        script: Some(REPORT_SCRIPT),
        data: embedded::documents(report),
    };
    page.render()
}

/// Draws a phase's first run on a target as an SVG file: throughput, latency, disk and memory over time. `None` where
/// that phase has no figures on that target; a run that is too short for a line has a note instead.
pub fn render_chart(report: &Report, target: usize, phase: &str) -> Option<String> {
    still::render(report, target, phase)
}

/// Renders a comparison of two reports; `a` and `b` are the same where two targets of one were compared.
pub fn render_comparison(comparison: &Comparison, a: &Report, b: &Report) -> String {
    comparison::render(comparison, a, b)
}

/// Renders a history. The file has 90 kB beside its figures.
pub fn render_history(history: &History) -> String {
    history::render(history)
}
