//! The operations of mixed phases.

use super::markup::Markup;
use super::steps::{heading, scrolling};
use crate::number::figure;
use crate::result::Report;
use crate::step_label;
use crate::step_summary::{self, PartSummary};
use bunko_statistics::LatencyHistogram;

const HEADINGS: [(&str, &str); 6] = [
    ("requests/s", "requests of this operation answered per second"),
    ("p50 µs", "median latency"),
    ("p99 µs", "99 of 100 requests were faster"),
    ("p99.9 µs", "999 of 1,000 requests were faster"),
    ("p99.99 µs", "9,999 of 10,000 requests were faster"),
    ("max µs", "the slowest request"),
];

pub(super) fn section(report: &Report) -> Markup {
    let parts_of = |step| step_summary::parts(step).into_iter().map(move |part| (step, part));
    let all: Vec<_> = report.steps.iter().flat_map(parts_of).collect();
    if all.is_empty() {
        return Markup::new();
    }
    let mut markup = Markup::new();
    scrolling(&mut markup, "Operations of mixed phases", |scroll| {
        scroll.within("table", &[("class", "figures")], |table| {
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.element("th", &[("scope", "col")], "Operation");
                    for (name, about) in HEADINGS {
                        heading(row, name, about);
                    }
                });
            });
            table.within("tbody", &[], |body| {
                for (step, part) in &all {
                    body.within("tr", &[], |row| {
                        row.within("th", &[("scope", "row")], |cell| {
                            cell.text(part.operation).classed("span", "settings", &step_label::full(report, step));
                        });
                        figures(row, part);
                    });
                }
            });
        });
    });
    markup
}

fn figures(row: &mut Markup, part: &PartSummary<'_>) {
    let latency = part.histogram.as_ref().map(LatencyHistogram::summary);
    let percentiles = latency
        .map(|latency| [latency.p50_us, latency.p99_us, latency.p999_us, latency.p9999_us, latency.max_us])
        .unwrap_or_default();
    for value in [part.requests_per_second].into_iter().chain(percentiles) {
        row.classed("td", "number", &value.map_or("–".into(), figure));
    }
}
