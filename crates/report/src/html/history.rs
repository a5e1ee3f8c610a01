//! Reports over time: a section per step, with a chart and a table of changes.

use super::charts::needs_script;
use super::markup::Markup;
use super::page::{HISTORY_SCRIPT, Page, Section};
use super::steps::{heading, micro, scrolling};
use crate::history::{Change, Effect, Ending, History, MetricHistory, ScenarioHistory};
use crate::number::{self, figure, utc};

pub(super) fn render(history: &History) -> String {
    let names: Vec<_> = history.scenarios.iter().map(ScenarioHistory::title).collect();
    let title = if names.is_empty() { "No history".to_owned() } else { names.join("; ") };
    let page = Page {
        title: format!("{title}: benchmark history"),
        header: header(history, &title),
        sections: sections(history),
        footer: format!(
            "Written by Bunko's performance lab, version {}. Charts: uPlot, MIT.",
            env!("CARGO_PKG_VERSION")
        ),
        script: Some(HISTORY_SCRIPT),
        data: vec![("history-json", serde_json::to_string(history).expect("the model has string keys only"))],
    };
    page.render()
}

fn sections(history: &History) -> Vec<Section> {
    let mut sections = Vec::new();
    for (index, scenario) in history.scenarios.iter().enumerate() {
        let title = |part: &str| match history.scenarios.len() {
            1 => part.to_owned(),
            _ => format!("{}: {part}", scenario.title()),
        };
        for (step, of_step) in scenario.steps.iter().enumerate() {
            let contents = charts_and_table(&of_step.step, (index, &step.to_string()), &of_step.metrics);
            sections.push(Section { id: format!("step-{index}-{step}"), title: title(&of_step.step), contents });
        }
        if !scenario.control.values.is_empty() {
            let contents = control(index, &scenario.control);
            sections.push(Section { id: format!("machine-{index}"), title: title("The machine"), contents });
        }
    }
    if !history.left_out.is_empty() {
        sections.push(Section { id: "left-out".to_owned(), title: "Left out".to_owned(), contents: left_out(history) });
    }
    sections
}

fn header(history: &History, title: &str) -> Markup {
    let mut markup = Markup::new();
    markup.classed("p", "kicker", "Benchmark history").element("h1", &[], title);
    for scenario in &history.scenarios {
        markup.within("p", &[("class", "when")], |line| {
            line.element("strong", &[], &scenario.title()).text(": ").text(&scenario.span());
        });
    }
    let class = match history.ending {
        Ending::Worse => "verdict invalid",
        Ending::Better => "verdict good",
        Ending::NoChange => "verdict neutral",
        Ending::TooFewReports => "verdict caution",
    };
    markup.within("div", &[("class", class), ("id", "verdict")], |verdict| {
        // The summary begins with a scenario's name, which must stay as it is.
        verdict.element("p", &[], &format!("{}.", history.summary));
    });
    markup
}

/// The part of the page that the script fills, by the scenario's index and the step's or `control`; and the changes.
fn charts_and_table(label: &str, (scenario, part): (usize, &str), metrics: &[MetricHistory]) -> Markup {
    let mut markup = Markup::new();
    needs_script(&mut markup);
    markup.within("div", &[("data-needs-script", ""), ("hidden", "")], |charts| {
        let scenario = scenario.to_string();
        charts.element("div", &[("class", "panels"), ("data-scenario", &scenario), ("data-history", part)], "");
    });
    table(&mut markup, label, metrics);
    markup
}

fn control(scenario: usize, control: &MetricHistory) -> Markup {
    let mut markup = Markup::new();
    markup.classed(
        "p",
        "note",
        "The generator's processor time per request relative to the first report, median of all steps. It should not \
         depend on the server: where it changes, the machine did.",
    );
    markup.append(&charts_and_table("The machine", (scenario, "control"), std::slice::from_ref(control)));
    markup
}

/// Appends the table of metrics: the first and the last value of each, and its changes.
fn table(markup: &mut Markup, label: &str, metrics: &[MetricHistory]) {
    scrolling(markup, label, |scroll| {
        scroll.within("table", &[("class", "comparison")], |table| {
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.element("th", &[("scope", "col")], "Metric");
                    heading(row, "first", "of the oldest report");
                    heading(row, "last", "of the newest report");
                    for name in ["Changed", "Levels"] {
                        row.element("th", &[("scope", "col")], name);
                    }
                    heading(row, "ratio", "level after the change over the one before");
                    for name in ["Verdict", "First report after it"] {
                        row.element("th", &[("scope", "col")], name);
                    }
                });
            });
            table.within("tbody", &[], |body| metrics.iter().for_each(|metric| rows(body, metric)));
        });
    });
}

/// One row for each change of a metric. The cells with the name, the first and the last value span all rows.
fn rows(body: &mut Markup, metric: &MetricHistory) {
    let span = metric.changes.len().max(1).to_string();
    let ends = [metric.values.first(), metric.values.last()];
    for index in 0..metric.changes.len().max(1) {
        let class = if index == 0 { "next-group" } else { "within-group" };
        body.within("tr", &[("class", class)], |row| {
            if index == 0 {
                row.element("th", &[("scope", "rowgroup"), ("rowspan", &span)], &micro(metric.metric));
                for value in ends {
                    let shown = value.map_or("–".into(), |value| figure(value.median));
                    row.element("td", &[("class", "number"), ("rowspan", &span)], &shown);
                }
            }
            match metric.changes.get(index) {
                Some(change) => cells(row, change),
                None => _ = row.element("td", &[("class", "word-alike"), ("colspan", "5")], "no change"),
            }
        });
    }
}

fn cells(row: &mut Markup, change: &Change) {
    row.element("td", &[], &utc(change.started_at_ms));
    row.element("td", &[], &format!("{} → {}", figure(change.before), figure(change.after)));
    row.classed("td", "number", &format!("{}x", number::ratio(change.ratio)));
    let class = match change.effect {
        _ if change.is_of_machine() => "word-alike",
        Effect::Better => "word-better",
        Effect::Worse => "word-worse",
        Effect::Differs => "word-alike",
    };
    row.classed("td", class, &change.verdict()).within("td", &[], |cell| {
        cell.text(&change.file);
        change.besides.iter().for_each(|line| _ = cell.classed("span", "settings", line));
    });
}

fn left_out(history: &History) -> Markup {
    let mut markup = Markup::new();
    markup.within("ul", &[], |list| {
        for left_out in &history.left_out {
            list.element("li", &[], &format!("{}: {}", left_out.file, left_out.reason));
        }
    });
    markup
}
