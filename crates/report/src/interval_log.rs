//! Histograms of every second in the interval log format (`.hlog`), which the tools of HdrHistogram read.

use crate::result::{Report, Run, Step};
use crate::step_label;
use bunko_statistics::{IntervalLogWriter, LatencyHistogram};
use std::io::{self, Write};
use std::time::Duration;

/// Writes all intervals of all runs, tagged with step and repetition. Times are relative to the report's start.
/// # Errors
/// Errors of `out`.
pub fn write<W: Write>(report: &Report, out: W) -> io::Result<()> {
    let mut log = IntervalLogWriter::begin(out, &report.scenario.name, report.started_at_ms)?;
    for step in &report.steps {
        for run in &step.runs {
            write_run(&mut log, report, step, run)?;
        }
    }
    log.finish()?.flush()
}

fn write_run<W: Write>(log: &mut IntervalLogWriter<W>, report: &Report, step: &Step, run: &Run) -> io::Result<()> {
    let tag = format!("{} #{}", step_label::full(report, step), run.repetition);
    // A comma ends a tag, and a blank ends the field.
    let tag = tag.replace([',', ' '], "_");
    let began = Duration::from_millis(run.started_at_ms.saturating_sub(report.started_at_ms));
    for interval in run.measurement().map_or(&[][..], |measurement| &measurement.intervals) {
        let histogram = interval.histogram.as_deref().map(LatencyHistogram::decode);
        if let Some(Ok(histogram)) = histogram {
            let at = began + Duration::from_secs_f64(interval.at_seconds);
            log.write(Some(&tag), at, Duration::from_secs_f64(interval.seconds), &histogram)?;
        }
    }
    Ok(())
}
