//! Throughput over two settings.

use super::markup::Markup;
use super::steps::scrolling;
use crate::number::figure;
use crate::result::{Report, Severity, Step};
use crate::step_label;
use bunko_statistics::Estimate;

/// Shades of the colour scale in the style sheet.
const SHADES: usize = 9;
/// Maximum number of maps shown; larger sweeps are left to the table.
const MAPS_MAX: usize = 12;

/// A property in which steps differ.
#[derive(Clone, PartialEq)]
enum Dimension {
    Setting(String),
    Phase,
    Connections,
    InFlight,
    Target,
}

/// One map: steps that differ only in its two dimensions.
struct Map<'a> {
    /// The values that the steps share.
    title: String,
    steps: Vec<&'a Step>,
}

pub(super) fn section(report: &Report) -> Markup {
    matrix(report).unwrap_or_default()
}

/// The heat maps; `None` if the steps form no matrix.
fn matrix(report: &Report) -> Option<Markup> {
    let (down, across) = axes(report)?;
    let maps = maps(report, &down, &across);
    let rates = || report.steps.iter().filter_map(rate).filter(|rate| *rate > 0.0);
    let (lowest, highest) = (rates().reduce(f64::min)?, rates().reduce(f64::max)?);
    if maps.is_empty() {
        return None;
    }
    let mut markup = Markup::new();
    let note = format!(
        "Documents per second; the colour runs logarithmically from {} to {} in all maps.",
        figure(lowest),
        figure(highest)
    );
    markup.classed("p", "note", &note);
    markup.within("div", &[("class", "maps")], |place| {
        for map in maps.iter().take(MAPS_MAX) {
            scrolling(place, &format!("Matrix {}", map.title), |scroll| {
                map.render(scroll, report, (&down, &across), &|rate| shade(rate, lowest, highest));
            });
        }
    });
    Some(markup)
}

/// The two most important dimensions: swept settings first, then concurrency, then phases.
fn axes(report: &Report) -> Option<(Dimension, Dimension)> {
    let settings = step_label::settings(report).into_iter().map(|setting| Dimension::Setting(setting.to_owned()));
    let mut varying: Vec<_> = settings.filter(|dimension| varies(report, dimension)).collect();
    // A sweep is shown over the phases, unless the levels of concurrency form a matrix of their own.
    let concurrency = [Dimension::Connections, Dimension::InFlight];
    if varying.is_empty() && concurrency.iter().all(|dimension| varies(report, dimension)) {
        return Some((Dimension::Connections, Dimension::InFlight));
    }
    let others = [Dimension::Phase, Dimension::Connections, Dimension::InFlight];
    varying.extend(others.into_iter().filter(|dimension| varies(report, dimension)));
    let mut varying = varying.into_iter();
    Some((varying.next()?, varying.next()?))
}

fn varies(report: &Report, dimension: &Dimension) -> bool {
    values(report.steps.iter(), report, dimension).len() > 1
}

/// The distinct values, in the order of the scenario.
fn values<'a>(steps: impl Iterator<Item = &'a Step>, report: &Report, dimension: &Dimension) -> Vec<String> {
    let mut values = Vec::new();
    for value in steps.map(|step| dimension.value(report, step)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn maps<'a>(report: &'a Report, down: &Dimension, across: &Dimension) -> Vec<Map<'a>> {
    let settings = step_label::settings(report).into_iter().map(|setting| Dimension::Setting(setting.to_owned()));
    let all = [Dimension::Target].into_iter().chain(settings);
    let all = all.chain([Dimension::Phase, Dimension::Connections, Dimension::InFlight]);
    let rest: Vec<_> = all.filter(|rest| rest != down && rest != across && varies(report, rest)).collect();
    let mut maps: Vec<Map<'a>> = Vec::new();
    for step in &report.steps {
        let parts: Vec<_> = rest.iter().map(|dimension| dimension.title(&dimension.value(report, step))).collect();
        let title = parts.join(", ");
        match maps.iter_mut().find(|map| map.title == title) {
            Some(map) => map.steps.push(step),
            None => maps.push(Map { title, steps: vec![step] }),
        }
    }
    let both_ways = |map: &Map<'_>| {
        [down, across].iter().all(|dimension| values(map.steps.iter().copied(), report, dimension).len() > 1)
    };
    maps.retain(both_ways);
    maps
}

fn rate(step: &Step) -> Option<f64> {
    let rates: Vec<_> = step.measurements().map(|measurement| measurement.documents_per_second).collect();
    Estimate::of(&rates).map(|estimate| estimate.median)
}

fn shade(rate: f64, lowest: f64, highest: f64) -> usize {
    let share = if highest > lowest { (rate / lowest).ln() / (highest / lowest).ln() } else { 0.5 };
    ((share.clamp(0.0, 1.0) * SHADES as f64) as usize).min(SHADES - 1)
}

impl Map<'_> {
    fn render(
        &self,
        markup: &mut Markup,
        report: &Report,
        (down, across): (&Dimension, &Dimension),
        shade: &dyn Fn(f64) -> usize,
    ) {
        let columns = values(self.steps.iter().copied(), report, across);
        let rows = values(self.steps.iter().copied(), report, down);
        markup.within("table", &[("class", "heat")], |table| {
            if !self.title.is_empty() {
                table.element("caption", &[], &self.title);
            }
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.classed("td", "axis", &format!("{} ↓ {} →", down.name(), across.name()));
                    for value in &columns {
                        row.element("th", &[("scope", "col")], value);
                    }
                });
            });
            table.within("tbody", &[], |body| {
                for value in &rows {
                    body.within("tr", &[], |row| {
                        row.element("th", &[("scope", "row")], value);
                        for column in &columns {
                            let here = |step: &&&Step| {
                                down.value(report, step) == *value && across.value(report, step) == *column
                            };
                            cell(row, self.steps.iter().find(here).copied(), shade);
                        }
                    });
                }
            });
        });
    }
}

fn cell(row: &mut Markup, step: Option<&Step>, shade: &dyn Fn(f64) -> usize) {
    let Some(step) = step else {
        row.classed("td", "none", "–");
        return;
    };
    let Some(rate) = rate(step) else {
        row.classed("td", "none", if step.is_skipped() { "skipped" } else { "–" });
        return;
    };
    let doubtful = step.badges().iter().any(|badge| badge.severity == Severity::Invalid);
    row.within("td", &[("class", &format!("heat-{}", shade(rate)))], |cell| {
        cell.text(&figure(rate));
        if doubtful {
            cell.text(" ✕").classed("span", "interval", "not valid");
        }
    });
}

impl Dimension {
    fn value(&self, report: &Report, step: &Step) -> String {
        match self {
            Self::Setting(setting) => step_label::setting(step, setting).unwrap_or("–").to_owned(),
            Self::Phase => step.phase.clone(),
            Self::Connections => step.connections.to_string(),
            Self::InFlight => step.in_flight.to_string(),
            Self::Target => step_label::target_label(report, step.target).to_owned(),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Setting(setting) => setting,
            Self::Phase => "phase",
            Self::Connections => "connections",
            Self::InFlight => "in flight",
            Self::Target => "target",
        }
    }

    fn title(&self, value: &str) -> String {
        match self {
            Self::Target | Self::Phase => value.to_owned(),
            _ => format!("{} {value}", self.name()),
        }
    }
}
