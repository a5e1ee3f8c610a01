//! How long file allocation took.

use super::badge;
use super::markup::Markup;
use super::steps::{heading, line, micro, scrolling};
use crate::number::{bytes, duration};
use crate::result::{AllocationRecord, Report, Severity};
use bunko_statistics::Estimate;

/// Width and height of a row of dots, in CSS pixels.
const STRIP: (f64, f64) = (260.0, 20.0);
/// Times are drawn as at least this long, in seconds: the logarithm of 0 has no place on the axis.
const SHORTEST: f64 = 1e-6;

pub(super) fn section(report: &Report) -> Markup {
    let records = &report.allocations;
    if records.is_empty() {
        return Markup::new();
    }
    let scale = Scale::of(records);
    let mut markup = Markup::new();
    markup.classed("p", "note", "Until the file has its size; one dot per repetition, on a logarithmic axis.");
    scrolling(&mut markup, "File allocation", |scroll| {
        scroll.within("table", &[("class", "figures")], |table| {
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.element("th", &[("scope", "col")], "Filesystem and method");
                    heading(row, "file", "the file's size");
                    heading(row, "median", "until the file has its size");
                    heading(row, "slowest", "the slowest repetition");
                    heading(row, "sync", "median of fdatasync after it");
                    row.within("th", &[("scope", "col"), ("class", "strip")], |cell| {
                        strip(cell, "Seconds", |svg| scale.ticks(svg));
                    });
                });
            });
            table.within("tbody", &[], |body| {
                for record in records {
                    body.within("tr", &[], |row| trial(row, record, &scale));
                }
            });
        });
    });
    markup
}

fn trial(row: &mut Markup, record: &AllocationRecord, scale: &Scale) {
    row.within("th", &[("scope", "row")], |cell| {
        cell.text(&format!("{}, {}", record.filesystem, record.method));
        cell.classed("span", "settings", &record.directory);
        let badges = record.badges();
        if badges.iter().any(|badge| badge.severity != Severity::Good) {
            badge::list(cell, &badges);
        }
    });
    row.classed("td", "number", &bytes(record.bytes as f64));
    let median = |seconds: &[f64]| Estimate::of(seconds).map(|estimate| micro(&duration(estimate.median)));
    let slowest = record.seconds.iter().copied().reduce(f64::max).map(|seconds| micro(&duration(seconds)));
    for shown in [median(&record.seconds), slowest, median(&record.sync_seconds)] {
        row.classed("td", "number", &shown.unwrap_or_else(|| "–".into()));
    }
    row.within("td", &[("class", "strip")], |cell| match &record.refused {
        Some(reason) => _ = cell.classed("span", "badge caution", reason),
        None => strip(cell, "", |svg| scale.dots(svg, &record.seconds)),
    });
}

/// Appends an SVG as wide as the axis.
fn strip(cell: &mut Markup, label: &str, fill: impl FnOnce(&mut Markup)) {
    let (width, height) = (STRIP.0.to_string(), STRIP.1.to_string());
    let role = if label.is_empty() { ("aria-hidden", "true") } else { ("aria-label", label) };
    cell.within("svg", &[("width", &width), ("height", &height), role], fill);
}

/// Powers of ten from the one below the fastest to the one above the slowest.
struct Scale {
    first_power: i32,
    last_power: i32,
}

impl Scale {
    fn of(records: &[AllocationRecord]) -> Self {
        let all = || records.iter().flat_map(|record| &record.seconds).map(|seconds| seconds.max(SHORTEST).log10());
        let first_power = all().fold(0.0, f64::min).floor() as i32;
        let last_power = all().fold(0.0, f64::max).ceil() as i32;
        Self { first_power, last_power: last_power.max(first_power + 1) }
    }

    fn at(&self, seconds: f64) -> f64 {
        let power = seconds.max(SHORTEST).log10() - f64::from(self.first_power);
        STRIP.0 * power / f64::from(self.last_power - self.first_power)
    }

    fn ticks(&self, svg: &mut Markup) {
        for power in self.first_power..=self.last_power {
            let x = format!("{:.1}", self.at(10_f64.powi(power)));
            let label = match power {
                ..-3 => format!("{} µs", 10_i32.pow((power + 6).max(0) as u32)),
                -3..0 => format!("{} ms", 10_i32.pow((power + 3) as u32)),
                _ => format!("{} s", 10_i32.pow(power as u32)),
            };
            svg.element("text", &[("class", "tick"), ("x", &x), ("y", "16"), ("text-anchor", "middle")], &label);
        }
    }

    fn dots(&self, svg: &mut Markup, seconds: &[f64]) {
        for power in self.first_power..=self.last_power {
            let x = format!("{:.1}", self.at(10_f64.powi(power)));
            let ends = [("x1", x.clone()), ("x2", x), ("y1", "-8".to_owned()), ("y2", (STRIP.1 + 8.0).to_string())];
            line(svg, "tick-line", &ends);
        }
        for &seconds in seconds {
            let x = format!("{:.1}", self.at(seconds));
            let middle = (STRIP.1 / 2.0).to_string();
            svg.element("circle", &[("class", "dot"), ("cx", &x), ("cy", &middle), ("r", "5")], "");
        }
    }
}
