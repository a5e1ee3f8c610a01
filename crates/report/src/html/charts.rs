//! The places that the script draws its charts in, and the choices that go with them.

use super::markup::Markup;
use crate::result::{Report, Step};
use crate::step_label;
use crate::step_summary;

/// With more curves than that the script shows one phase's at a time, and the list of steps is in groups.
const CURVES_MAX: usize = 8;

pub(super) fn percentiles(report: &Report) -> Markup {
    if with_curves(report).next().is_none() {
        return Markup::new();
    }
    let mut markup = Markup::new();
    markup.classed(
        "p",
        "note",
        "How many of 100 requests were faster. Both axes are logarithmic. A curve ends where fewer than ten requests \
         lie beyond it; the slowest request stands in the table.",
    );
    needs_script(&mut markup);
    markup.within("div", &[("data-needs-script", ""), ("hidden", "")], |part| {
        if with_curves(report).map(|step| step_summary::parts(step).len() + 1).sum::<usize>() > CURVES_MAX {
            part.within("div", &[("class", "controls")], |controls| {
                choice(controls, "Curves of", "curves-page", |_| ());
            });
        }
        let chart =
            [("id", "curves-chart"), ("class", "chart"), ("role", "img"), ("aria-label", "Latency by percentile")];
        part.element("div", &chart, "");
        part.element("p", &[("id", "curves-at"), ("class", "note"), ("aria-live", "off")], "");
        part.element("ul", &[("id", "curves-lines"), ("class", "lines"), ("aria-label", "Steps shown")], "");
    });
    markup
}

pub(super) fn seconds(report: &Report) -> Markup {
    if with_seconds(report).next().is_none() {
        return Markup::new();
    }
    let mut markup = Markup::new();
    needs_script(&mut markup);
    markup.within("div", &[("data-needs-script", ""), ("hidden", "")], |part| {
        part.within("div", &[("class", "controls")], |controls| {
            choice(controls, "Step", "series-step", |select| {
                let mut groups: Vec<(String, Vec<(usize, &Step)>)> = Vec::new();
                for (index, step) in with_seconds(report) {
                    let name = step_label::group(report, step);
                    match groups.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, steps)) => steps.push((index, step)),
                        None => groups.push((name, vec![(index, step)])),
                    }
                }
                let is_flat =
                    groups.len() < 2 || groups.iter().map(|(_, steps)| steps.len()).sum::<usize>() <= CURVES_MAX;
                for (name, steps) in groups {
                    let fill = |list: &mut Markup| {
                        for (index, step) in steps {
                            let label = step_label::full(report, step);
                            list.element("option", &[("value", &index.to_string())], &label);
                        }
                    };
                    if is_flat {
                        fill(select);
                    } else {
                        select.within("optgroup", &[("label", &name)], fill);
                    }
                }
            });
            choice(controls, "Repetition", "series-run", |_| ());
            choice(controls, "Counter", "series-counter", |_| ());
        });
        part.element("p", &[("class", "note"), ("id", "series-shown")], "");
        part.element("div", &[("id", "series-panels"), ("class", "panels")], "");
    });
    markup
}

/// Steps whose latencies make a curve.
pub(super) fn with_curves(report: &Report) -> impl Iterator<Item = &Step> {
    report.steps.iter().filter(|step| step_summary::has_curve(step))
}

/// Steps that can be shown second by second, and their indexes.
fn with_seconds(report: &Report) -> impl Iterator<Item = (usize, &Step)> {
    report.steps.iter().enumerate().filter(|(_, step)| has_seconds(step))
}

/// Whether a run has at least two seconds: a single point makes no line.
pub(super) fn has_seconds(step: &Step) -> bool {
    step.measurements().any(|run| run.intervals.len() > 1)
}

fn choice(controls: &mut Markup, label: &str, id: &str, fill: impl FnOnce(&mut Markup)) {
    controls.within("label", &[], |entry| {
        entry.text(label).within("select", &[("id", id)], fill);
    });
}

pub(super) fn needs_script(markup: &mut Markup) {
    markup.within("noscript", &[], |note| {
        note.classed("p", "note", "This chart is drawn by a script; the tables and the raw data have its figures.");
    });
}
