//! Figures for spreadsheets: one row per run, or one row per second. RFC 4180, with units in the heading.

use crate::machine_pauses;
use crate::result::{Interval, Measurement, MemberRecord, Outcome, Report, Run, SetRecord, Step};
use crate::step_label;
use std::io::{self, Write};

/// A heading, and the cell of a run.
type RunColumn = (&'static str, fn(&Row<'_>) -> String);
/// A heading, and the cell of a second.
type IntervalColumn = (&'static str, fn(&Interval) -> String);

/// A run, with its step and report.
struct Row<'a> {
    report: &'a Report,
    step: &'a Step,
    run: &'a Run,
}

const PLACE: &[RunColumn] = &[
    ("scenario", |row| row.report.scenario.name.clone()),
    ("target", |row| step_label::target_label(row.report, row.step.target).to_owned()),
    ("phase", |row| row.step.phase.clone()),
    ("operation", |row| row.step.operation.clone()),
    ("connections", |row| row.step.connections.to_string()),
    ("in_flight", |row| row.step.in_flight.to_string()),
    ("repetition", |row| row.run.repetition.to_string()),
];

const FIGURES: &[RunColumn] = &[
    ("started_at_ms", |row| row.run.started_at_ms.to_string()),
    ("skipped", |row| match &row.run.outcome {
        Outcome::Skipped { reason } => reason.clone(),
        Outcome::Measured(_) => String::new(),
    }),
    ("requests", |row| row.figure(|run| Some(run.requests as f64))),
    ("documents", |row| row.figure(|run| Some(run.documents as f64))),
    ("document_bytes", |row| row.figure(|run| run.document_bytes.map(|bytes| bytes as f64))),
    ("errors", |row| row.figure(|run| Some(run.errors as f64))),
    ("begun_anew", |row| row.figure(|run| Some(run.begun_anew as f64))),
    ("elapsed_s", |row| row.figure(|run| Some(run.elapsed_seconds))),
    ("documents_per_s", |row| row.figure(|run| Some(run.documents_per_second))),
    ("offered_requests_per_s", |row| row.figure(|run| run.offered_rate)),
    ("achieved_requests_per_s", |row| row.figure(|run| Some(run.achieved_rate))),
    ("latency_mean_us", |row| row.figure(|run| run.latency.mean_us)),
    ("latency_p50_us", |row| row.figure(|run| run.latency.p50_us)),
    ("latency_p90_us", |row| row.figure(|run| run.latency.p90_us)),
    ("latency_p99_us", |row| row.figure(|run| run.latency.p99_us)),
    ("latency_p999_us", |row| row.figure(|run| run.latency.p999_us)),
    ("latency_p9999_us", |row| row.figure(|run| run.latency.p9999_us)),
    ("latency_max_us", |row| row.figure(|run| run.latency.max_us)),
    ("machine_pause_p99_us", |row| row.figure(|run| run.pauses.as_ref()?.lateness.p99_us)),
    ("machine_pause_p999_us", |row| row.figure(|run| run.pauses.as_ref()?.lateness.p999_us)),
    ("machine_pause_max_us", |row| row.figure(|run| run.pauses.as_ref()?.lateness.max_us)),
    ("machine_pause_priority", |row| {
        let pauses = row.run.measurement().and_then(|run| run.pauses.as_ref());
        pauses.map(|pauses| machine_pauses::priority(pauses.priority).to_owned()).unwrap_or_default()
    }),
    ("server_cpu_s", |row| row.figure(|run| run.server_cpu_seconds)),
    ("server_resident_bytes", |row| row.figure(|run| run.server_resident_bytes.map(|bytes| bytes as f64))),
    ("server_resident_max_bytes", |row| row.figure(|run| run.server_resident_max_bytes().map(|bytes| bytes as f64))),
    ("loop_cpu_s", |row| row.figure(|run| run.loop_device()?.cpu_seconds)),
    ("loop_shared_cpu_s", |row| row.figure(|run| run.loop_device()?.shared_cpu_seconds)),
    ("settled_after_s", |row| row.figure(|run| run.settling.map(|settling| settling.seconds))),
    ("settled_server_cpu_s", |row| row.figure(Measurement::settled_cpu_seconds)),
    ("latency_p999_change", |row| row.figure(|run| run.p999_trend.map(|trend| trend.change()))),
    ("journal_syncs", |row| row.figure(|run| run.journal_syncs.map(|syncs| syncs as f64))),
    ("generator_cpu_s", |row| row.figure(|run| Some(run.generator_cpu_seconds))),
    ("generator_threads", |row| row.figure(|run| Some(run.generator_threads as f64))),
    ("cache", |row| row.run.measurement().map(|run| run.cache.clone()).unwrap_or_default()),
    ("verified_documents", |row| row.figure(|run| Some(run.verified_documents as f64))),
    ("archive_bytes", |row| row.figure(|run| run.transfer.as_ref().map(|transfer| transfer.archive_bytes as f64))),
    ("lag_s", |row| row.figure(|run| run.set.as_ref()?.lag_seconds())),
    ("longest_lag_s", |row| row.figure(|run| run.set.as_ref()?.longest_lag_seconds())),
    ("catch_up_s", |row| row.figure(|run| run.set.as_ref()?.catch_up_seconds)),
    ("members_cpu_s", |row| {
        row.run.measurement().and_then(|run| run.set.as_ref()).map(members_cpu).unwrap_or_default()
    }),
    ("reference_documents_per_s", |row| {
        row.step.reference.as_ref().map(|reference| reference.documents_per_second.to_string()).unwrap_or_default()
    }),
    ("findings", |row| {
        let findings = row.run.measurement().into_iter().flat_map(|run| &run.findings);
        findings.map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }),
];

/// `db1:27017 PRIMARY 12.5; db2:27017 SECONDARY 6.25`
fn members_cpu(set: &SetRecord) -> String {
    let member = |member: &MemberRecord| {
        let seconds = member.cpu_seconds.map_or_else(|| "-".to_owned(), |seconds| seconds.to_string());
        format!("{} {} {seconds}", member.host, member.state)
    };
    set.members.iter().map(member).collect::<Vec<_>>().join("; ")
}

const INTERVAL_FIGURES: &[IntervalColumn] = &[
    ("at_s", |interval| interval.at_seconds.to_string()),
    ("length_s", |interval| interval.seconds.to_string()),
    ("requests", |interval| interval.requests.to_string()),
    ("documents", |interval| interval.documents.to_string()),
    ("errors", |interval| interval.errors.to_string()),
    ("latency_mean_us", |interval| shown(interval.latency.mean_us)),
    ("latency_p50_us", |interval| shown(interval.latency.p50_us)),
    ("latency_p90_us", |interval| shown(interval.latency.p90_us)),
    ("latency_p99_us", |interval| shown(interval.latency.p99_us)),
    ("latency_p999_us", |interval| shown(interval.latency.p999_us)),
    ("latency_p9999_us", |interval| shown(interval.latency.p9999_us)),
    ("latency_max_us", |interval| shown(interval.latency.max_us)),
];

/// Writes one row per run, including skipped runs.
/// # Errors
/// Errors of `out`.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let settings = step_label::settings(report);
    let headings = headings(PLACE).chain(settings.iter().map(|setting| (*setting).to_owned())).chain(headings(FIGURES));
    write_row(out, headings)?;
    for row in rows(report) {
        let variant = settings.iter().map(|setting| row.setting(setting));
        write_row(out, row.cells(PLACE).chain(variant).chain(row.cells(FIGURES)))?;
    }
    Ok(())
}

/// Writes one row per second of each run.
/// # Errors
/// Errors of `out`.
pub fn write_intervals(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let settings = step_label::settings(report);
    let headings =
        headings(PLACE).chain(settings.iter().map(|setting| (*setting).to_owned())).chain(headings(INTERVAL_FIGURES));
    write_row(out, headings)?;
    for row in rows(report) {
        for interval in row.run.measurement().into_iter().flat_map(|run| &run.intervals) {
            let variant = settings.iter().map(|setting| row.setting(setting));
            let figures = INTERVAL_FIGURES.iter().map(|(_, cell)| cell(interval));
            write_row(out, row.cells(PLACE).chain(variant).chain(figures))?;
        }
    }
    Ok(())
}

impl Row<'_> {
    fn figure(&self, figure: impl Fn(&Measurement) -> Option<f64>) -> String {
        shown(self.run.measurement().and_then(figure))
    }

    fn setting(&self, setting: &str) -> String {
        step_label::setting(self.step, setting).unwrap_or_default().to_owned()
    }

    fn cells(&self, columns: &'static [RunColumn]) -> impl Iterator<Item = String> {
        columns.iter().map(|(_, cell)| cell(self))
    }
}

fn rows(report: &Report) -> impl Iterator<Item = Row<'_>> {
    report.steps.iter().flat_map(move |step| step.runs.iter().map(move |run| Row { report, step, run }))
}

fn headings<F>(columns: &'static [(&'static str, F)]) -> impl Iterator<Item = String> {
    columns.iter().map(|(heading, _)| (*heading).to_owned())
}

fn shown(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn write_row(out: &mut dyn Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    for (index, cell) in cells.enumerate() {
        let separator = if index > 0 { "," } else { "" };
        write!(out, "{separator}{}", quoted(&cell))?;
    }
    out.write_all(b"\r\n")
}

/// Quotes a cell where RFC 4180 requires it. Text that a spreadsheet would read as a formula gets an apostrophe,
/// because names come from servers and files of others.
fn quoted(cell: &str) -> String {
    let is_number = cell.parse::<f64>().is_ok();
    let formula = !is_number && cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn cells_are_quoted_where_needed() {
        let shown = ["plain", "1,5", "say \"so\"", "two\nlines", "=1+1", "-5", "-x"].map(quoted);
        assert_eq!(shown, ["plain", "\"1,5\"", "\"say \"\"so\"\"\"", "\"two\nlines\"", "'=1+1", "-5", "'-x"]);
    }

    #[test]
    fn every_row_has_as_many_cells_as_the_heading() {
        for (name, make) in fixture::ALL {
            let report = make();
            for written in [write, write_intervals] {
                let mut out = Vec::new();
                written(&report, &mut out).unwrap();
                let text = String::from_utf8(out).unwrap();
                let widths: Vec<_> = records(&text).iter().map(Vec::len).collect();
                assert!(widths.iter().all(|width| *width == widths[0]), "{name}: {widths:?}");
            }
        }
    }

    #[test]
    fn there_is_one_row_per_run_and_per_second() {
        let report = fixture::engines();
        let runs: Vec<_> = report.steps.iter().flat_map(|step| &step.runs).collect();
        let seconds: usize = runs.iter().map(|run| run.measurement().unwrap().intervals.len()).sum();
        for (written, expected) in [(write as fn(&_, &mut dyn Write) -> _, runs.len()), (write_intervals, seconds)] {
            let mut out = Vec::new();
            written(&report, &mut out).unwrap();
            assert_eq!(records(&String::from_utf8(out).unwrap()).len() - 1, expected);
        }
    }

    /// Parses the written rows by RFC 4180.
    fn records(text: &str) -> Vec<Vec<String>> {
        let (mut records, mut record, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '"' if quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
                '"' => quoted = !quoted,
                ',' if !quoted => record.push(std::mem::take(&mut cell)),
                '\n' if !quoted => {
                    record.push(std::mem::take(&mut cell));
                    records.push(std::mem::take(&mut record));
                }
                '\r' if !quoted => {}
                other => cell.push(other),
            }
        }
        records
    }
}
