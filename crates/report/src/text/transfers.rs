//! Dumps and restores have a table of their own: connections and requests say nothing about them.

use super::grid::{Grid, Side};
use super::{clipped, step_table};
use crate::recommendation;
use crate::result::{Report, Step};
use crate::step_label;
use crate::step_summary::StepSummary;

/// Whether the step dumps or restores.
pub(super) fn is_transfer(step: &Step) -> bool {
    matches!(step.operation.as_str(), "dump" | "restore")
}

/// The table, with the columns in the order of experiment E2's: settings, times, and figures from both.
pub(super) fn table(report: &Report, width: usize) -> Vec<String> {
    let mut lines = step_table(report, width, is_transfer, add_names);
    if !lines.is_empty() {
        lines.extend(recommendation::of_report(report));
    }
    lines
}

fn add_names(grid: &mut Grid, report: &Report, summaries: &[StepSummary<'_>]) {
    grid.add("target", Side::Left, summaries.iter().map(|row| step_label::target(report, row.step).map(clipped)));
    grid.add("phase", Side::Left, summaries.iter().map(|row| Some(clipped(&row.step.phase))));
    let settings = step_label::settings(report);
    for setting in &settings {
        let values = summaries.iter().map(|row| step_label::setting(row.step, setting).map(clipped));
        grid.add(&clipped(heading(setting, &settings)), Side::Left, values);
    }
}

/// The last part of a setting's name, unless another setting ends in it too.
fn heading<'s>(setting: &'s str, settings: &[&str]) -> &'s str {
    let last = |setting: &'s str| setting.rsplit('.').next().unwrap_or(setting);
    let of_setting = last(setting);
    let namesakes = settings.iter().filter(|other| other.rsplit('.').next() == Some(of_setting)).count();
    if namesakes > 1 { setting } else { of_setting }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::text::DEFAULT_WIDTH;

    #[test]
    fn headings_are_as_short_as_they_can_be() {
        let settings = ["dump.compression", "dump.parallel", "restore.parallel"];
        assert_eq!(heading(settings[0], &settings), "compression");
        assert_eq!(heading(settings[1], &settings), "dump.parallel");
    }

    #[test]
    fn a_restore_has_seconds_and_a_bottleneck_and_no_requests() {
        let lines = table(&fixture::restores(), DEFAULT_WIDTH).join("\n");
        for shown in ["workers", "seconds", "bottleneck", "server 75 %", "tool us/doc", "dump MB", "reference MB/s"] {
            assert!(lines.contains(shown), "{shown} in\n{lines}");
        }
        for hidden in ["requests/s", "max us", "generator", "connections"] {
            assert!(!lines.contains(hidden), "{hidden} in\n{lines}");
        }
        assert_eq!(table(&fixture::plain(), DEFAULT_WIDTH), Vec::<String>::new());
    }
}
