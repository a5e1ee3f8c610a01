//! Size of the data on the server.

use super::markup::Markup;
use super::steps::{heading, micro, scrolling};
use crate::result::Report;
use crate::storage_rows::{self, COLUMNS};

pub(super) fn section(report: &Report) -> Markup {
    let rows = storage_rows::of_report(report);
    if rows.is_empty() {
        return Markup::new();
    }
    let filled: Vec<_> =
        COLUMNS.iter().filter(|column| rows.iter().any(|row| column.readable(row).is_some())).collect();
    let mut markup = Markup::new();
    markup.classed("p", "note", "dbStats at the end.");
    scrolling(&mut markup, "Storage", |scroll| {
        scroll.within("table", &[("class", "figures")], |table| {
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.element("th", &[("scope", "col")], "Target");
                    for column in &filled {
                        heading(row, &micro(column.heading), column.about);
                    }
                });
            });
            table.within("tbody", &[], |body| {
                for figures in &rows {
                    body.within("tr", &[], |row| {
                        row.element("th", &[("scope", "row")], figures.label.trim_start());
                        for column in &filled {
                            row.classed("td", "number", &column.readable(figures).unwrap_or_else(|| "–".into()));
                        }
                    });
                }
            });
        });
    });
    markup
}
