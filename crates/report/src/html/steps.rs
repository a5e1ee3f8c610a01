//! The table of steps.

use super::markup::Markup;
use super::{badge, charts};
use crate::number::{figure, ratio};
use crate::recommendation;
use crate::result::{Badge, Report, Severity, Step};
use crate::set_columns::OF_SETS;
use crate::step_columns::{FIGURES, THROUGHPUT};
use crate::step_label;
use crate::step_summary::{self, Baseline, StepSummary};
use std::collections::BTreeSet;

/// Width and height of a throughput bar, in CSS pixels.
const BAR: (f64, f64) = (96.0, 12.0);

pub(super) fn section(report: &Report) -> Markup {
    if report.steps.is_empty() {
        return Markup::new();
    }
    let (summaries, baseline) = step_summary::of_report(report);
    let fastest = summaries.iter().map(upper_end).fold(0.0, f64::max);
    let all = FIGURES.iter().chain(OF_SETS);
    let filled: Vec<_> =
        all.filter(|column| summaries.iter().any(|summary| (column.cell)(summary).is_some())).collect();
    let mut markup = Markup::new();
    markup.classed("p", "note", &note(report, baseline));
    scrolling(&mut markup, "Steps", |scroll| {
        scroll.within("table", &[("class", "figures")], |table| {
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.element("th", &[("scope", "col")], "Step");
                    heading(row, "docs/s", THROUGHPUT[0].about).element("td", &[("class", "no-print")], "");
                    if let Some(baseline) = baseline {
                        heading(row, &times(&baseline.heading(report)), baseline.about());
                    }
                    for column in &filled {
                        heading(row, &micro(column.heading), column.about);
                    }
                });
            });
            table.within("tbody", &[], |body| {
                let mut before: Option<&Step> = None;
                for (index, summary) in summaries.iter().enumerate() {
                    let grouped = before.is_none_or(|before| same_group(before, summary.step));
                    before = Some(summary.step);
                    body.within("tr", &[("class", if grouped { "step" } else { "step next-group" })], |row| {
                        row_heading(row, index, summary);
                        throughput(row, summary, fastest);
                        if baseline.is_some() {
                            relative(row, summary);
                        }
                        for column in &filled {
                            row.classed("td", "number", &(column.cell)(summary).unwrap_or_else(|| "–".into()));
                        }
                    });
                }
            });
        });
    });
    explanations(&mut markup, report, baseline, &filled);
    markup
}

/// Appends a box that a wide table scrolls in, also by keyboard.
pub(super) fn scrolling(markup: &mut Markup, label: &str, fill: impl FnOnce(&mut Markup)) {
    let attributes = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", label)];
    markup.within("div", &attributes, fill);
}

/// A column's heading, with its explanation.
pub(super) fn heading<'a>(row: &'a mut Markup, text: &str, about: &str) -> &'a mut Markup {
    row.element("th", &[("scope", "col"), ("class", "number"), ("title", about)], text)
}

fn note(report: &Report, baseline: Option<Baseline>) -> String {
    let repetitions: BTreeSet<_> = report.steps.iter().map(|step| step.measurements().count()).collect();
    let repeated = match (repetitions.first(), repetitions.last()) {
        (_, Some(1) | None) => "One run of each step: without repetitions there are no intervals.".to_owned(),
        (_, Some(2)) => "Two repetitions: the middle between them and both figures; two are too few for a confidence \
                         interval. Latencies of all requests together."
            .to_owned(),
        (Some(least), Some(most)) if least == most => {
            format!(
                "Medians of {most} repetitions, with 95 % confidence intervals; latencies of all requests together."
            )
        }
        _ => {
            "Medians of the repetitions, with 95 % confidence intervals where there are three; latencies of all requests \
             together."
                .to_owned()
        }
    };
    let baseline = baseline.map(|baseline| format!("Baseline: {}.", baseline.about()));
    let remarkable = report.steps.iter().any(|step| remarkable_badges(step).is_some());
    let badges = remarkable.then(|| "Steps without a badge are valid.".to_owned());
    [Some(repeated), baseline, badges].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A heading with the sign µ, which the terminal's ASCII lacks.
pub(super) fn micro(heading: &str) -> String {
    heading.replace(" us", " µs")
}

fn times(heading: &str) -> String {
    heading.replacen("x ", "× ", 1)
}

fn same_group(a: &Step, b: &Step) -> bool {
    a.target == b.target && a.variant == b.variant
}

fn row_heading(row: &mut Markup, index: usize, summary: &StepSummary<'_>) {
    let step = summary.step;
    row.within("th", &[("scope", "row")], |cell| {
        let name = format!("{} {} × {}", step.phase, step.connections, step.in_flight);
        if charts::has_seconds(step) {
            cell.element("a", &[("href", "#seconds"), ("data-step", &index.to_string())], &name);
        } else {
            cell.text(&name);
        }
        let target = step_label::target(summary.report, step).map(str::to_owned);
        let variant = step.variant.iter().map(|(setting, value)| format!("{setting} {value}"));
        let settings: Vec<_> = target.into_iter().chain(variant).collect();
        if !settings.is_empty() {
            cell.classed("span", "settings", &settings.join(", "));
        }
        if let Some(badges) = remarkable_badges(step) {
            badge::list(cell, &badges);
        }
    });
}

/// Badges other than `valid`, which would only hide them in a long table.
fn remarkable_badges(step: &Step) -> Option<Vec<Badge>> {
    let badges = step.badges();
    badges.iter().any(|badge| badge.severity != Severity::Good).then_some(badges)
}

fn upper_end(summary: &StepSummary<'_>) -> f64 {
    let median = summary.documents_per_second.as_ref().map_or(0.0, |estimate| estimate.median);
    summary.interval().map_or(median, |(_, high)| high.max(median))
}

/// Writes the throughput and its interval, then both as a bar.
fn throughput(row: &mut Markup, summary: &StepSummary<'_>, fastest: f64) {
    let Some(estimate) = &summary.documents_per_second else {
        row.classed("td", "number", "–").element("td", &[("class", "no-print")], "");
        return;
    };
    row.within("td", &[("class", "number")], |cell| {
        cell.classed("span", "main-figure", &figure(estimate.median));
        let ends = estimate.interval.or_else(|| summary.range());
        if let Some((low, high)) = ends {
            cell.classed("span", "interval", &format!("{} – {}", figure(low), figure(high)));
        }
    });
    row.within("td", &[("class", "no-print")], |cell| {
        let (width, height) = (BAR.0.to_string(), BAR.1.to_string());
        let attributes = [("width", width.as_str()), ("height", height.as_str()), ("aria-hidden", "true")];
        cell.within("svg", &attributes, |svg| {
            let at = |rate: f64| format!("{:.1}", if fastest > 0.0 { BAR.0 * rate / fastest } else { 0.0 });
            bar(svg, "track", &width);
            bar(svg, "bar", &at(estimate.median));
            if let Some((low, high)) = estimate.interval {
                let middle = (BAR.1 / 2.0).to_string();
                let ends = [("x1", at(low)), ("x2", at(high)), ("y1", middle.clone()), ("y2", middle)];
                line(svg, "whisker", &ends);
            }
        });
    });
}

fn bar(svg: &mut Markup, class: &str, width: &str) {
    let height = BAR.1.to_string();
    svg.element("rect", &[("class", class), ("width", width), ("height", &height), ("rx", "2")], "");
}

/// Appends an SVG line.
pub(super) fn line(svg: &mut Markup, class: &str, ends: &[(&'static str, String); 4]) {
    let [a, b, c, d] = ends.each_ref().map(|(name, value)| (*name, value.as_str()));
    svg.element("line", &[("class", class), a, b, c, d], "");
}

fn relative(row: &mut Markup, summary: &StepSummary<'_>) {
    let Some(relative) = &summary.relative else {
        row.classed("td", "number", "–");
        return;
    };
    row.within("td", &[("class", "number")], |cell| {
        if relative.is_baseline {
            cell.classed("span", "unit", "baseline");
            return;
        }
        let about = if relative.interval.is_some() { "" } else { "~" };
        cell.text(&format!("{about}{}", ratio(relative.ratio)));
        if let Some((low, high)) = relative.interval {
            cell.classed("span", "interval", &format!("{} – {}", ratio(low), ratio(high)));
        }
    });
}

fn explanations(
    markup: &mut Markup,
    report: &Report,
    baseline: Option<Baseline>,
    filled: &[&crate::step_columns::Column],
) {
    markup.within("details", &[], |details| {
        details.element("summary", &[], "Meaning of the columns");
        details.within("dl", &[], |list| {
            let mut explain = |heading: &str, about: &str| {
                list.element("dt", &[], heading).element("dd", &[], about);
            };
            explain("Step", "phase, connections × requests in flight on each");
            explain("docs/s", THROUGHPUT[0].about);
            if let Some(baseline) = baseline {
                let about = format!("{}; with ~ in front where there is no interval", baseline.about());
                explain(&times(&baseline.heading(report)), &about);
            }
            for column in filled {
                explain(&micro(column.heading), column.about);
            }
        });
    });
    let sources: BTreeSet<_> = report.steps.iter().filter_map(|step| Some(&step.reference.as_ref()?.source)).collect();
    for source in sources {
        markup.classed("p", "note", &format!("Reference: {source}."));
    }
    for line in recommendation::of_report(report) {
        markup.classed("p", "note", &format!("Recommendation: {line}."));
    }
}
