//! Two reports, or two targets of one, side by side.

use super::badge;
use super::markup::Markup;
use super::page::{Page, Section};
use super::provenance;
use super::ratio_axis::RatioAxis;
use super::steps::{heading, micro, scrolling};
use super::verdict::sentence;
use crate::compare::{Comparison, MetricComparison, PROCEDURE, Pairing, Role, StepComparison, Verdict};
use crate::number::{self, figure};
use crate::result::Report;

pub(super) fn render(comparison: &Comparison, a: &Report, b: &Report) -> String {
    let mut sections = vec![Section { id: "steps".to_owned(), title: "Steps".to_owned(), contents: steps(comparison) }];
    let contents = unmatched(comparison);
    if !contents.is_empty() {
        sections.push(Section { id: "unmatched".to_owned(), title: "Not compared".to_owned(), contents });
    }
    let (label_a, label_b) = (&comparison.a.label, &comparison.b.label);
    if a == b {
        sections.push(Section { id: "run".to_owned(), title: "The run".to_owned(), contents: side(a) });
    } else {
        sections.push(Section { id: "a".to_owned(), title: format!("Run {label_a}"), contents: side(a) });
        sections.push(Section { id: "b".to_owned(), title: format!("Run {label_b}"), contents: side(b) });
    }
    let page = Page {
        title: format!("{}: {label_a} and {label_b} compared", a.scenario.name),
        header: header(comparison, a),
        sections,
        footer: format!("Written by Bunko's performance lab, version {}.", env!("CARGO_PKG_VERSION")),
        script: None,
        data: Vec::new(),
    };
    page.render()
}

fn header(comparison: &Comparison, a: &Report) -> Markup {
    let mut markup = Markup::new();
    markup.classed("p", "kicker", "Benchmark comparison").element("h1", &[], &a.scenario.name);
    for side in [&comparison.a, &comparison.b] {
        markup.within("p", &[("class", "when")], |line| {
            line.element("strong", &[], &side.label).text(": ").text(&side.description);
        });
    }
    let class = if comparison.cautions.is_empty() { "verdict neutral" } else { "verdict caution" };
    markup.within("div", &[("class", class), ("id", "verdict")], |verdict| {
        // The sentence begins with the label of a side, which must not be capitalized.
        verdict.element("p", &[], &format!("{}.", comparison.summary));
        if !comparison.cautions.is_empty() {
            verdict.within("ul", &[("class", "cautions")], |list| {
                comparison.cautions.iter().for_each(|caution| _ = list.element("li", &[], &sentence(caution)));
            });
        }
    });
    markup
}

fn steps(comparison: &Comparison) -> Markup {
    let (a, b) = (&comparison.a.label, &comparison.b.label);
    let axis = RatioAxis::of(comparison.steps.iter().flat_map(|step| &step.metrics).map(|metric| &metric.ratio));
    let samples = match comparison.pairing {
        Pairing::Independent => "Medians over the repetitions.",
        Pairing::ByRepetition => "Medians over the repetitions; ratios of repetitions that ran right after each other.",
    };
    let mut markup = Markup::new();
    let note = format!("{samples} Ratios with 95 % confidence intervals, each on its own. Verdicts: {PROCEDURE}.");
    markup.classed("p", "note", &note);
    scrolling(&mut markup, "Steps", |scroll| {
        scroll.within("table", &[("class", "comparison")], |table| {
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.element("th", &[("scope", "col")], "Step").element("th", &[("scope", "col")], "Metric");
                    heading(row, a, "median");
                    heading(row, b, "median");
                    heading(row, &format!("{b} / {a}"), "ratio and its interval");
                    row.within("th", &[("scope", "col"), ("class", "strip")], |cell| axis.ticks(cell));
                    row.element("th", &[("scope", "col")], "Verdict");
                });
            });
            table.within("tbody", &[], |body| {
                comparison.steps.iter().for_each(|step| rows(body, step, &axis));
            });
        });
    });
    markup
}

/// Appends a row for each of a step's metrics; the step's name spans them.
fn rows(body: &mut Markup, step: &StepComparison, axis: &RatioAxis) {
    let span = step.metrics.len().to_string();
    for (index, metric) in step.metrics.iter().enumerate() {
        let class = if index == 0 { "next-group" } else { "within-group" };
        body.within("tr", &[("class", class)], |row| {
            if index == 0 {
                row.element("th", &[("scope", "rowgroup"), ("rowspan", &span)], &step.step);
            }
            let name = if metric.role == Role::Headline { "headline" } else { "detail" };
            row.classed("td", name, &micro(metric.metric));
            row.classed("td", "number", &figure(metric.a.median)).classed("td", "number", &figure(metric.b.median));
            ratio(row, metric);
            row.within("td", &[("class", "strip")], |cell| axis.whisker(cell, &metric.ratio, tone(metric.verdict)));
            row.classed("td", &format!("word-{}", tone(metric.verdict)), &metric.verdict.to_string());
        });
    }
}

fn ratio(row: &mut Markup, metric: &MetricComparison) {
    row.within("td", &[("class", "number")], |cell| {
        cell.text(&number::ratio(metric.ratio.ratio));
        if !matches!(metric.verdict, Verdict::TooFewRepetitions | Verdict::TooShort) {
            cell.classed(
                "span",
                "interval",
                &format!("{} – {}", number::ratio(metric.ratio.low), number::ratio(metric.ratio.high)),
            );
        }
    });
}

fn tone(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        _ => "alike",
    }
}

fn unmatched(comparison: &Comparison) -> Markup {
    let sides = [(&comparison.a, &comparison.only_in_a), (&comparison.b, &comparison.only_in_b)];
    let mut markup = Markup::new();
    for (side, steps) in sides.iter().filter(|(_, steps)| !steps.is_empty()) {
        markup.element("h3", &[], &format!("Only in {}", side.label));
        markup.within("ul", &[], |list| steps.iter().for_each(|step| _ = list.element("li", &[], step)));
    }
    markup
}

/// Facts from a run's own report.
fn side(report: &Report) -> Markup {
    let mut markup = Markup::new();
    markup.element("p", &[], &sentence(&report.verdict()));
    badge::list(&mut markup, &report.badges());
    markup.append(&provenance::environment(report)).append(&provenance::command(report));
    markup
}
