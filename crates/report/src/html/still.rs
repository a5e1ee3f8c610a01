//! A run, second by second, as a picture for places where no script runs: one SVG file that loads nothing.

use super::markup::Markup;
use crate::number::{bytes, duration, figure};
use crate::result::{Interval, Measurement, Report, ServerSample, Step};
use crate::step_label;
use crate::tail_trend::merged;
use bunko_statistics::{LatencyHistogram, LatencySummary};

/// Pixels of the picture and of a panel's area.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const PANEL: f64 = 170.0;
const BELOW_PANEL: f64 = 34.0;
/// Points of a line; longer runs are summed up to as many parts.
const POINTS_MAX: usize = 200;
/// Legible on white and on print.
const COLOURS: [&str; 3] = ["#1f5fbf", "#c2410c", "#15803d"];
const INK: &str = "#374151";
const GRID: &str = "#d1d5db";

/// A line's points: seconds from the start and figure.
type Points = Vec<(f64, f64)>;

struct Line {
    label: &'static str,
    points: Points,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    FromZero,
    Logarithmic,
}

struct Panel {
    title: &'static str,
    scale: Scale,
    shown: fn(f64) -> String,
    lines: Vec<Line>,
}

/// Draws a phase's first run on a target: throughput, latency, memory and disk. `None` where it has no figures;
/// a run that is too short for a line has a note instead.
pub(super) fn render(report: &Report, target: usize, phase: &str) -> Option<String> {
    let is_it = |step: &&Step| step.target == target && step.phase == phase && step.measurements().next().is_some();
    let step = report.steps.iter().find(is_it)?;
    let run = step.measurements().next()?;
    let panels: Vec<Panel> =
        panels(run).into_iter().filter(|panel| panel.lines.iter().any(|line| line.points.len() > 1)).collect();
    // Axes without a line would look like a chart of nothing.
    let note = panels.is_empty().then(|| format!("no chart: {} make no line", duration(run.elapsed_seconds)));
    let height = TOP + panels.len() as f64 * (PANEL + BELOW_PANEL) + if note.is_some() { BELOW_PANEL } else { 0.0 };
    let mut svg = Markup::new();
    let view = format!("0 0 {WIDTH} {height}");
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("viewBox", view.as_str()),
        ("font-family", "system-ui, sans-serif"),
        ("font-size", "12"),
        ("fill", INK),
    ];
    svg.within("svg", &attributes, |svg| {
        let title = format!("{}: {}", report.scenario.name, step_label::full(report, step));
        svg.element("title", &[], &title);
        svg.element("rect", &[("width", "100%"), ("height", "100%"), ("fill", "#ffffff")], "");
        text(svg, (8.0, 20.0), "start", &title);
        if let Some(note) = &note {
            text(svg, (8.0, 20.0 + BELOW_PANEL), "start", note);
        }
        for (place, panel) in panels.iter().enumerate() {
            draw(svg, panel, TOP + place as f64 * (PANEL + BELOW_PANEL), run.elapsed_seconds);
        }
    });
    Some(svg.finish() + "\n")
}

fn panels(run: &Measurement) -> Vec<Panel> {
    let whole: Vec<&Interval> = run.intervals.iter().filter(|interval| interval.seconds >= 0.999).collect();
    let length = whole.len().div_ceil(POINTS_MAX).max(1);
    let parts: Vec<ChartPoint> = whole.chunks(length).map(ChartPoint::of).collect();
    let of_parts = |figure: fn(&ChartPoint) -> Option<f64>| -> Points {
        parts.iter().filter_map(|part| Some((part.at, figure(part)?))).collect()
    };
    let length = run.server.len().div_ceil(POINTS_MAX).max(1);
    let of_samples = |figure: fn(&ServerSample) -> Option<u64>| -> Points {
        let last_of = |samples: &[ServerSample]| {
            let last = samples.last()?;
            Some((last.at_seconds, figure(last)? as f64))
        };
        run.server.chunks(length).filter_map(last_of).collect()
    };
    let line = |label, points| Line { label, points };
    vec![
        Panel {
            title: "requests/s",
            scale: Scale::FromZero,
            shown: figure,
            lines: vec![line("requests/s", of_parts(|part| Some(part.rate)))],
        },
        Panel {
            title: "latency",
            scale: Scale::Logarithmic,
            shown: microseconds,
            lines: vec![
                line("p50", of_parts(|part| part.latency.p50_us)),
                line("p99.9", of_parts(|part| part.latency.p999_us)),
                line("max", of_parts(|part| part.latency.max_us)),
            ],
        },
        Panel {
            title: "disk and memory",
            scale: Scale::FromZero,
            shown: bytes,
            lines: vec![
                line("data directory", of_samples(|sample| sample.disk_bytes)),
                line("resident memory", of_samples(|sample| sample.resident_bytes)),
            ],
        },
    ]
}

/// A point of a line, which sums up one second or several.
struct ChartPoint {
    at: f64,
    rate: f64,
    latency: LatencySummary,
}

impl ChartPoint {
    fn of(seconds: &[&Interval]) -> Self {
        let length: f64 = seconds.iter().map(|second| second.seconds).sum();
        let requests: u64 = seconds.iter().map(|second| second.requests).sum();
        let histograms = seconds.iter().map(|second| LatencyHistogram::decode(second.histogram.as_deref()?).ok());
        let latency = match histograms.collect::<Option<Vec<_>>>() {
            Some(histograms) => merged(&histograms).summary(),
            // Percentiles are never averaged: without histograms one second stands for all.
            None => seconds[0].latency.clone(),
        };
        Self { at: seconds[0].at_seconds + length / 2.0, rate: requests as f64 / length, latency }
    }
}

fn microseconds(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{} s", figure(value / 1e6)),
        _ if value >= 1e3 => format!("{} ms", figure(value / 1e3)),
        _ => format!("{} us", figure(value)),
    }
}

fn draw(svg: &mut Markup, panel: &Panel, top: f64, seconds: f64) {
    let values = || panel.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let highest = values().fold(0.0, f64::max);
    let lowest = values().filter(|value| *value > 0.0).fold(highest, f64::min);
    let ticks = match panel.scale {
        Scale::FromZero => linear_ticks(highest),
        Scale::Logarithmic => decades(lowest, highest),
    };
    let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
    let share = |value: f64| match panel.scale {
        Scale::FromZero => (value - low) / (high - low),
        Scale::Logarithmic => (value.max(low) / low).ln() / (high / low).ln(),
    };
    let y = |value: f64| top + PANEL - PANEL * share(value);
    let x = |at: f64| LEFT + (WIDTH - LEFT - RIGHT) * at / seconds;
    for &tick in &ticks {
        rule(svg, (LEFT, y(tick)), (WIDTH - RIGHT, y(tick)));
        text(svg, (LEFT - 6.0, y(tick) + 4.0), "end", &(panel.shown)(tick));
    }
    for tick in linear_ticks(seconds).into_iter().filter(|tick| *tick <= seconds) {
        rule(svg, (x(tick), top + PANEL), (x(tick), top + PANEL + 4.0));
        text(svg, (x(tick), top + PANEL + 17.0), "middle", &format!("{tick} s"));
    }
    let mut legend = LEFT + 8.0;
    for (line, colour) in panel.lines.iter().zip(COLOURS).filter(|(line, _)| line.points.len() > 1) {
        let points: Vec<String> =
            line.points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
        let attributes = [("points", points.join(" ")), ("stroke", colour.to_owned())];
        let [points, stroke] = attributes.each_ref().map(|(name, value)| (*name, value.as_str()));
        svg.element("polyline", &[points, stroke, ("fill", "none"), ("stroke-width", "1.5")], "");
        let at = (format!("{legend:.1}"), format!("{:.1}", top + 14.0));
        let label =
            if line.label == panel.title { line.label.to_owned() } else { format!("{} {}", panel.title, line.label) };
        svg.element("text", &[("x", &at.0), ("y", &at.1), ("fill", colour)], &label);
        legend += 24.0 + 6.6 * label.len() as f64;
    }
}

/// Ticks of an axis from 0 to at least `highest`, in four to ten round steps.
fn linear_ticks(highest: f64) -> Vec<f64> {
    let highest = if highest > 0.0 { highest } else { 1.0 };
    let magnitude = 10_f64.powf((highest / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude).into_iter().find(|step| highest / step <= 5.0);
    let step = step.unwrap_or(highest / 5.0);
    (0..=(highest / step).ceil() as u32).map(|tick| f64::from(tick) * step).collect()
}

/// Ticks at powers of ten, from at most `lowest` to at least `highest`.
fn decades(lowest: f64, highest: f64) -> Vec<f64> {
    let lowest = if lowest > 0.0 { lowest } else { 1.0 };
    let (first, last) = (lowest.log10().floor() as i32, highest.max(lowest).log10().ceil() as i32);
    (first..=last.max(first + 1)).map(|power| 10_f64.powi(power)).collect()
}

fn text(svg: &mut Markup, (x, y): (f64, f64), anchor: &str, text: &str) {
    let (x, y) = (format!("{x:.1}"), format!("{y:.1}"));
    svg.element("text", &[("x", &x), ("y", &y), ("text-anchor", anchor)], text);
}

fn rule(svg: &mut Markup, from: (f64, f64), to: (f64, f64)) {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(|place| format!("{place:.1}"));
    svg.element("line", &[("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2), ("stroke", GRID)], "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_picture_has_a_line_for_each_series_and_escapes_names() {
        let svg = render(&fixture::plain(), 0, "insert").expect("it has figures");
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<polyline").count(), 1 + 2 + 2, "one second has too few requests for p99.9");
        for label in ["requests/s", "latency max", "disk and memory data directory"] {
            assert!(svg.contains(&format!(">{label}</text>")), "{label}");
        }
        let hostile = fixture::hostile();
        let svg = render(&hostile, 0, &hostile.steps[0].phase).expect("it has figures");
        assert!(!svg.contains("<script"));
        assert_eq!(render(&fixture::plain(), 0, "nothing"), None);
        assert_eq!(render(&fixture::plain(), 1, "insert"), None);
        let mut brief = fixture::plain();
        let run = fixture::measurement(&mut brief.steps[0]);
        run.intervals.truncate(1);
        run.server.clear();
        let svg = render(&brief, 0, "insert").expect("it has figures");
        assert!(svg.contains(">no chart: 20.0 s make no line</text>") && !svg.contains("<polyline"), "{svg}");
    }

    #[test]
    fn ticks_are_round_and_reach_beyond_the_highest() {
        assert_eq!(linear_ticks(730.0), [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert_eq!(linear_ticks(5.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(linear_ticks(0.0).len(), 6);
        assert_eq!(decades(230.0, 41_000.0), [100.0, 1_000.0, 10_000.0, 100_000.0]);
        assert_eq!(decades(100.0, 100.0), [100.0, 1_000.0]);
    }
}
