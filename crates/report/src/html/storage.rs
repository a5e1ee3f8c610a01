//! What the data took on the server.

use super::markup::Markup;
use super::steps::{heading, scrolling};
use crate::number::{bytes, thousands};
use crate::result::{Report, StorageRecord};
use crate::text::storage_label;

/// A heading, an explanation, a cell.
type Column = (&'static str, &'static str, fn(&StorageRecord) -> Option<String>);

const COLUMNS: [Column; 6] = [
    ("objects", "documents", |record| record.objects.map(thousands)),
    ("dataSize", "the documents' encoded size", |record| record.data_size.map(bytes)),
    ("storageSize", "what the documents take", |record| record.storage_size.map(bytes)),
    ("storageSize / dataSize", "below 1 where documents are compressed", |record| {
        let (storage, data) = (record.storage_size?, record.data_size?);
        (data > 0.0).then(|| format!("{:.2}", storage / data))
    }),
    ("indexSize", "what the indexes take", |record| record.index_size.map(bytes)),
    ("fileSize", "all files of the data directory", |record| record.file_size.map(bytes)),
];

pub(super) fn section(report: &Report) -> Markup {
    let records = &report.storage;
    if records.is_empty() {
        return Markup::new();
    }
    let filled: Vec<_> =
        COLUMNS.iter().filter(|(_, _, cell)| records.iter().any(|record| cell(record).is_some())).collect();
    let mut markup = Markup::new();
    markup.classed("p", "note", "dbStats at the end.");
    scrolling(&mut markup, "Storage", |scroll| {
        scroll.within("table", &[("class", "figures")], |table| {
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    row.element("th", &[("scope", "col")], "Target");
                    for (name, about, _) in &filled {
                        heading(row, name, about);
                    }
                });
            });
            table.within("tbody", &[], |body| {
                for record in records {
                    body.within("tr", &[], |row| {
                        row.element("th", &[("scope", "row")], &storage_label(report, record));
                        for (_, _, cell) in &filled {
                            row.classed("td", "number", &cell(record).unwrap_or_else(|| "–".into()));
                        }
                    });
                }
            });
        });
    });
    markup
}
