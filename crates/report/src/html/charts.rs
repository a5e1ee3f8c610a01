//! The places that the script draws its charts in, and the choices that go with them.

use super::markup::Markup;
use crate::result::{Report, Step};
use crate::step_label;

pub(super) fn percentiles(report: &Report) -> Markup {
    if measured(report).next().is_none() {
        return Markup::new();
    }
    let mut markup = Markup::new();
    markup.classed(
        "p",
        "note",
        "How many of 100 requests were faster. Both axes are logarithmic; to the right stand ever fewer requests.",
    );
    needs_script(&mut markup);
    markup.within("div", &[("data-needs-script", ""), ("hidden", "")], |part| {
        let chart =
            [("id", "curves-chart"), ("class", "chart"), ("role", "img"), ("aria-label", "Latency by percentile")];
        part.element("div", &chart, "");
        part.element("p", &[("id", "curves-at"), ("class", "note"), ("aria-live", "off")], "");
        part.element("ul", &[("id", "curves-lines"), ("class", "lines"), ("aria-label", "Steps shown")], "");
    });
    markup
}

pub(super) fn seconds(report: &Report) -> Markup {
    if measured(report).next().is_none() {
        return Markup::new();
    }
    let mut markup = Markup::new();
    needs_script(&mut markup);
    markup.within("div", &[("data-needs-script", ""), ("hidden", "")], |part| {
        part.within("div", &[("class", "controls")], |controls| {
            choice(controls, "Step", "series-step", |select| {
                for (index, step) in measured(report) {
                    let label = step_label::full(report, step);
                    select.element("option", &[("value", &index.to_string())], &label);
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

/// Steps with figures, and their indexes.
pub(super) fn measured(report: &Report) -> impl Iterator<Item = (usize, &Step)> {
    report.steps.iter().enumerate().filter(|(_, step)| step.measurements().next().is_some())
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
