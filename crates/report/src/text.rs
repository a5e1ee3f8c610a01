//! The report for the terminal.

mod grid;
mod transfers;

use crate::number::{self, bytes, duration, figure, utc};
use crate::result::{AllocationRecord, LoopDeviceUse, Report, Step, TargetRecord, Transport};
use crate::step_columns::{self, Column};
use crate::step_summary::{self, StepSummary};
use crate::{machine_pauses, set_columns, step_label, storage_rows};
use bunko_statistics::{Estimate, LatencyHistogram, LatencySummary, SYMMETRIC_MAX};
use grid::{Grid, Side};

/// Maximum number of characters of a name in the table of steps.
const NAME_WIDTH_MAX: usize = 24;
/// Width of tables if the width of the terminal is unknown, as in a pipe or a file.
pub const DEFAULT_WIDTH: usize = 120;
/// On a terminal with fewer columns the figures come directly after the verdict, and a row's name takes one column.
const NARROW_BELOW: usize = 100;

/// The whole report in plain text, in tables of at most `width` characters; ends in a newline.
pub fn table(report: &Report, width: usize) -> String {
    let verdict = vec![format!("verdict: {}", report.verdict())];
    let figures = [steps, transfers::table, parts, storage, allocations].map(|part| part(report, width)).concat();
    let parts = if width < NARROW_BELOW {
        // On a small screen, the header would push the figures out of view.
        [verdict, figures, remarks(report), vec![String::new()], header(report)]
    } else {
        [verdict, header(report), figures, remarks(report), Vec::new()]
    };
    let mut lines = parts.concat();
    lines.push(String::new());
    harmless(&lines.join("\n"))
}

/// Replaces control characters, with which a name could take over the terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|character| if character.is_control() && character != '\n' { '?' } else { character }).collect()
}

/// Shortens a name to leave room for figures.
fn clipped(name: &str) -> String {
    if name.chars().count() <= NAME_WIDTH_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_WIDTH_MAX - 1).chain(['…']).collect()
}

/// The machine, the servers and the command.
fn header(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for target in &report.targets {
        let label = if report.targets.len() > 1 { format!(" {}", target.label) } else { String::new() };
        lines.push(format!("durability{label}: {}", target.durability));
        lines.push(format!("server{label}: {}", server(target)));
    }
    let machine = &report.machine;
    let memory = bytes(machine.memory_bytes as f64);
    let watched = machine_pauses::watched(report).map_or(String::new(), |watched| format!(", pauses {watched}"));
    lines
        .push(format!("client: {}, {} cores, {memory}, {}{watched}", machine.processor, machine.cores, machine.kernel));
    let scenario = &report.scenario;
    lines.push(format!("load: {}: {}, seed {}", scenario.name, scenario.about, scenario.seed));
    let took = report.ended_at_ms.saturating_sub(report.started_at_ms) as f64 / 1e3;
    lines.push(format!("run: {}, {}", utc(report.started_at_ms), duration(took)));
    lines
}

/// Findings that the verdict does not mention.
fn remarks(report: &Report) -> Vec<String> {
    let flaws = report.flaws().into_iter().enumerate();
    let unsaid = flaws.filter(|(index, flaw)| *index > 0 || flaw.places.len() > 1);
    let flaws = unsaid.map(|(_, flaw)| format!("flaw: {flaw}"));
    let skipped = report.steps.iter().filter_map(|step| {
        let reason = step.skip_reason()?;
        Some(format!("skipped: {}: {reason}", step_label::full(report, step)))
    });
    flaws.chain(skipped).collect()
}

/// The facts about a server, on one line.
pub(crate) fn server(target: &TargetRecord) -> String {
    let mut parts = vec![format!("{} over {}", target.address, transports(target))];
    parts
        .push(target.version.as_ref().map_or("of unstated version".to_owned(), |version| format!("version {version}")));
    parts.extend(target.storage_engine.as_ref().map(|engine| format!("engine {engine}")));
    parts.extend(target.filesystem.as_ref().map(|filesystem| format!("on {filesystem}")));
    let place = match (target.embedded, target.local) {
        (true, _) => "started by the lab on the client's machine",
        (false, true) => "on the client's machine",
        // A Unix socket leads to no other machine.
        (false, false) if target.transports == [Transport::Unix] => "on the client's machine, in a container",
        (false, false) => "on another machine",
    };
    parts.push(place.to_owned());
    if !target.settings.is_empty() {
        parts.push(format!("with {}", settings(target)));
    }
    parts.join(", ")
}

/// The transports used. An older report has only the address, and TLS is over TCP too.
pub(crate) fn transports(target: &TargetRecord) -> String {
    let name = |transport: &Transport| match transport {
        Transport::Tcp => "TCP",
        Transport::Tls => "TLS",
        Transport::Unix => "a Unix socket",
    };
    let by_address = [if target.address.starts_with('/') { Transport::Unix } else { Transport::Tcp }];
    let transports = if target.transports.is_empty() { &by_address } else { target.transports.as_slice() };
    transports.iter().map(name).collect::<Vec<_>>().join(" and ")
}

/// The settings that differ from the defaults, or that there are none.
pub(crate) fn settings(target: &TargetRecord) -> String {
    let named: Vec<_> = target.settings.iter().map(|(setting, value)| format!("{setting}={value}")).collect();
    if named.is_empty() { "the defaults".to_owned() } else { named.join(" ") }
}

fn steps(report: &Report, width: usize) -> Vec<String> {
    step_table(report, width, |step| !transfers::is_transfer(step), add_names)
}

/// Adds the columns that name the steps.
type AddNames = fn(&mut Grid, &Report, &[StepSummary<'_>]);

/// A table of the wanted steps; no lines if there are none.
fn step_table(report: &Report, width: usize, is_wanted: fn(&Step) -> bool, add_names: AddNames) -> Vec<String> {
    let (mut summaries, baseline) = step_summary::of_report(report);
    summaries.retain(|summary| is_wanted(summary.step));
    if summaries.is_empty() {
        return Vec::new();
    }
    let mut grid = Grid::new(summaries.len());
    if width < NARROW_BELOW {
        grid.add("step", Side::Left, summaries.iter().map(|row| Some(step_label::full(report, row.step))));
    } else {
        add_names(&mut grid, report, &summaries);
    }
    let names = grid.columns.len();
    add_figures(&mut grid, &summaries, step_columns::THROUGHPUT);
    if let Some(baseline) = baseline {
        grid.add(&baseline.heading(report), Side::Right, summaries.iter().map(ratio));
    }
    grid.add("badges", Side::Left, summaries.iter().map(|row| Some(badges(row))));
    add_figures(&mut grid, &summaries, step_columns::FIGURES);
    add_figures(&mut grid, &summaries, set_columns::OF_SETS);
    let mut lines = grid.lines(names, width);
    lines.extend(sources(&summaries));
    lines
}

fn add_names(grid: &mut Grid, report: &Report, summaries: &[StepSummary<'_>]) {
    grid.add("target", Side::Left, summaries.iter().map(|row| step_label::target(report, row.step).map(clipped)));
    for setting in step_label::settings(report) {
        let values = summaries.iter().map(|row| step_label::setting(row.step, setting).map(clipped));
        grid.add(&clipped(setting), Side::Left, values);
    }
    grid.add("phase", Side::Left, summaries.iter().map(|row| Some(clipped(&row.step.phase))));
    grid.add("connections", Side::Right, summaries.iter().map(|row| Some(row.step.connections.to_string())));
    grid.add("in flight", Side::Right, summaries.iter().map(|row| Some(row.step.in_flight.to_string())));
}

/// Sources of the published figures of these steps.
fn sources(summaries: &[StepSummary<'_>]) -> Vec<String> {
    let mut sources: Vec<_> = summaries.iter().filter_map(|row| row.step.reference.as_ref()).collect();
    sources.dedup_by_key(|reference| &reference.source);
    sources.iter().map(|reference| format!("reference: {}", reference.source)).collect()
}

/// The operations of mixed phases.
fn parts(report: &Report, width: usize) -> Vec<String> {
    let all: Vec<_> = report
        .steps
        .iter()
        .flat_map(|step| step_summary::parts(step).into_iter().map(move |part| (step_label::full(report, step), part)))
        .map(|(step, part)| (step, part.histogram.as_ref().map(LatencyHistogram::summary), part))
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    type Percentile = fn(&LatencySummary) -> Option<f64>;
    const PERCENTILES: [(&str, Percentile); 5] = [
        ("p50 us", |latency| latency.p50_us),
        ("p99 us", |latency| latency.p99_us),
        ("p99.9 us", |latency| latency.p999_us),
        ("p99.99 us", |latency| latency.p9999_us),
        ("max us", |latency| latency.max_us),
    ];
    let mut grid = Grid::new(all.len());
    grid.add("operations of", Side::Left, all.iter().map(|(step, ..)| Some(step.clone())));
    grid.add("operation", Side::Left, all.iter().map(|(.., part)| Some(part.operation.to_owned())));
    grid.add("requests/s", Side::Right, all.iter().map(|(.., part)| part.requests_per_second.map(figure)));
    for (heading, percentile) in PERCENTILES {
        let cells = all.iter().map(|(_, latency, _)| latency.as_ref().and_then(percentile).map(figure));
        grid.add(heading, Side::Right, cells);
    }
    grid.lines(2, width)
}

fn add_figures(grid: &mut Grid, summaries: &[StepSummary<'_>], columns: &[Column]) {
    for column in columns {
        grid.add(column.heading, Side::Right, summaries.iter().map(column.cell));
    }
}

fn ratio(summary: &StepSummary<'_>) -> Option<String> {
    let relative = summary.relative.as_ref()?;
    Some(match relative.interval {
        Some((low, high)) if (high - low) / 2.0 <= relative.ratio * SYMMETRIC_MAX => {
            format!("{:.2} ± {:.2}", relative.ratio, (high - low) / 2.0)
        }
        Some((low, high)) => {
            format!("{} ({}..{})", number::ratio(relative.ratio), number::ratio(low), number::ratio(high))
        }
        None if relative.is_baseline => number::ratio(relative.ratio),
        // The ratio has no interval, so two decimals would promise too much precision.
        None => format!("~{}", number::ratio(relative.ratio)),
    })
}

fn badges(summary: &StepSummary<'_>) -> String {
    let texts: Vec<_> = summary.step.badges().into_iter().map(|badge| badge.text).collect();
    texts.join(", ")
}

fn storage(report: &Report, width: usize) -> Vec<String> {
    let rows = storage_rows::of_report(report);
    if rows.is_empty() {
        return Vec::new();
    }
    let mut grid = Grid::new(rows.len());
    grid.add("storage of", Side::Left, rows.iter().map(|row| Some(row.label.clone())));
    for column in storage_rows::COLUMNS {
        grid.add(column.heading, Side::Right, rows.iter().map(|row| column.exact(row)));
    }
    grid.lines(1, width)
}

fn allocations(report: &Report, width: usize) -> Vec<String> {
    let records = &report.allocations;
    if records.is_empty() {
        return Vec::new();
    }
    let mut grid = Grid::new(records.len());
    let of = |seconds: &[f64]| Estimate::of(seconds).map(|estimate| figure(estimate.median));
    let slowest = |record: &AllocationRecord| record.seconds.iter().copied().reduce(f64::max).map(figure);
    grid.add("allocation on", Side::Left, records.iter().map(|record| Some(record.filesystem.clone())));
    grid.add("method", Side::Left, records.iter().map(|record| Some(record.method.clone())));
    grid.add("file", Side::Right, records.iter().map(|record| Some(bytes(record.bytes as f64))));
    grid.add("median s", Side::Right, records.iter().map(|record| of(&record.seconds)));
    grid.add("max s", Side::Right, records.iter().map(slowest));
    grid.add("sync s", Side::Right, records.iter().map(|record| of(&record.sync_seconds)));
    let badges = |record: &AllocationRecord| {
        let texts: Vec<_> = record.badges().into_iter().map(|badge| badge.text).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    grid.add("badges", Side::Left, records.iter().map(badges));
    let cpu = |figure_of: fn(&LoopDeviceUse) -> Option<f64>| {
        records.iter().map(move |record| record.loop_device.as_ref().and_then(figure_of).map(figure))
    };
    grid.add("loop CPU s", Side::Right, cpu(|device| device.cpu_seconds));
    grid.add("shared CPU s", Side::Right, cpu(|device| device.shared_cpu_seconds));
    grid.add("refused", Side::Left, records.iter().map(|record| record.refused.clone()));
    grid.lines(2, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn no_table_is_wider_than_the_terminal() {
        for (name, make) in fixture::ALL {
            for width in [40, 60, 80, 120, 200] {
                let text = table(&make(), width);
                let is_table = |line: &&str| line.contains("  ") && !line.contains(": ");
                let widest = text.lines().filter(is_table).map(|line| line.chars().count()).max().unwrap_or_default();
                assert!(widest <= width, "{name} at {width}: {widest}\n{text}");
            }
        }
        assert!(table(&fixture::engines(), 200).lines().any(|line| line.chars().count() > 150), "it uses the room");
    }

    #[test]
    fn a_narrow_screen_begins_with_verdict_and_figures() {
        let text = table(&fixture::plain(), 60);
        let lines: Vec<_> = text.lines().take(4).collect();
        assert!(lines[0].starts_with("verdict: valid") && lines[2].starts_with("step "), "{lines:?}");
        assert!(lines[2].contains("docs/s") && lines[3].starts_with("insert, 1 x 1 "), "{lines:?}");
        assert!(text.contains("\ndurability: "), "the rest follows");
        assert!(table(&fixture::plain(), 100).lines().nth(1).is_some_and(|line| line.starts_with("durability")));
    }

    #[test]
    fn two_repetitions_have_a_range_and_no_interval() {
        let mut report = fixture::engines();
        report.steps.iter_mut().for_each(|step| step.runs.truncate(2));
        let text = table(&report, DEFAULT_WIDTH);
        assert!(text.contains("docs/s seen") && !text.contains("95 %") && !text.contains('±'), "{text}");
    }

    #[test]
    fn a_server_is_said_to_be_where_it_can_be() {
        let mut target = fixture::plain().targets.remove(0);
        assert!(
            server(&target).starts_with("127.0.0.1:27017 over TCP, ") && server(&target).contains("on the client's")
        );
        target.local = false;
        assert!(server(&target).ends_with("on another machine"), "{}", server(&target));
        target.transports = vec![Transport::Unix];
        assert!(server(&target).ends_with("on the client's machine, in a container"), "{}", server(&target));
        target.transports = vec![Transport::Tls, Transport::Unix];
        assert!(server(&target).contains(" over TLS and a Unix socket, "), "{}", server(&target));
    }
}
