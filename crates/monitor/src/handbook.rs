//! The page of metrics is made from the table.

use crate::metrics::{FAMILIES, Kind, Source};
use bunko_testkit::handbook::{Table, check_table};

#[test]
fn the_page_has_every_metric() {
    let mut table = Table::new(&["Metric", "Kind", "Labels", "Meaning"]);
    for family in FAMILIES {
        let total = if family.kind == Kind::Counter { "_total" } else { "" };
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels = match family.source {
            Source::Value { .. } => String::new(),
            Source::Each { label, .. } => format!("`{label}`"),
            Source::Text { labels } => {
                labels.iter().map(|(label, _)| format!("`{label}`")).collect::<Vec<_>>().join(", ")
            }
            Source::Labelled { label, values } | Source::Latencies { label, values } => {
                let values: Vec<&str> =
                    values.iter().map(|(value, _)| *value).filter(|value| !value.is_empty()).collect();
                if values.is_empty() { String::new() } else { format!("`{label}`: {}", values.join(", ")) }
            }
        };
        table.push([format!("`{}{total}`", family.full_name()), kind.to_owned(), labels, family.help.to_owned()]);
    }
    check_table("reference/metrics.md", "metrics", &table);
}
