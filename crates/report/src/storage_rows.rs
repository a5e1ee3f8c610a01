//! Size of the data on a server and the cost of loading it, with the columns of terminal and HTML.

use crate::number::{bytes, figure, thousands};
use crate::result::{Measurement, Report, Step, StorageRecord};
use crate::step_label;
use crate::step_summary::rate;
use bunko_statistics::Estimate;

/// A target's figures, or the published figures of the corresponding engine.
#[derive(Default)]
pub(crate) struct StorageRow {
    pub(crate) label: String,
    documents_per_second: Option<f64>,
    server_us: Option<f64>,
    settled_us: Option<f64>,
    settled_after: Option<f64>,
    objects: Option<f64>,
    data: Option<f64>,
    storage: Option<f64>,
    index: Option<f64>,
    file: Option<f64>,
    live: Option<f64>,
}

/// The format of a column's figures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Figure,
    Count,
    Bytes,
    Ratio,
}

/// A column; omitted if no row has a figure.
pub(crate) struct StorageColumn {
    pub(crate) heading: &'static str,
    /// The meaning of the figure, in words.
    pub(crate) about: &'static str,
    form: Form,
    value: fn(&StorageRow) -> Option<f64>,
}

/// In the order of experiment E3's table, then figures that explain it.
pub(crate) const COLUMNS: &[StorageColumn] = &[
    StorageColumn {
        heading: "load docs/s",
        about: "documents per second of the load; the median where it was repeated",
        form: Form::Figure,
        value: |row| row.documents_per_second,
    },
    StorageColumn { heading: "objects", about: "documents", form: Form::Count, value: |row| row.objects },
    StorageColumn {
        heading: "dataSize",
        about: "the documents' encoded size",
        form: Form::Bytes,
        value: |row| row.data,
    },
    StorageColumn {
        heading: "storageSize",
        about: "what the documents take",
        form: Form::Bytes,
        value: |row| row.storage,
    },
    StorageColumn { heading: "indexSize", about: "what the indexes take", form: Form::Bytes, value: |row| row.index },
    StorageColumn {
        heading: "fileSize",
        about: "all files of the data directory",
        form: Form::Bytes,
        value: |row| row.file,
    },
    StorageColumn {
        heading: "storageSize / dataSize",
        about: "below 1 where documents are compressed",
        form: Form::Ratio,
        value: |row| rate(row.storage?, row.data?),
    },
    StorageColumn {
        heading: "fileSize / live",
        about: "all files over what the documents come to at the ratio by which the scenario says that they compress",
        form: Form::Ratio,
        value: |row| rate(row.file?, row.live?),
    },
    StorageColumn {
        heading: "server us/doc",
        about: "processor time of the server per document while they were loaded, in microseconds",
        form: Form::Figure,
        value: |row| row.server_us,
    },
    StorageColumn {
        heading: "settled us/doc",
        about: "the same with the server's work after the last reply",
        form: Form::Figure,
        value: |row| row.settled_us,
    },
    StorageColumn {
        heading: "settled after s",
        about: "seconds from the load's last reply until the server had no more work",
        form: Form::Figure,
        value: |row| row.settled_after,
    },
];

impl StorageColumn {
    /// The figure to the byte, for the terminal.
    pub(crate) fn exact(&self, row: &StorageRow) -> Option<String> {
        let value = (self.value)(row)?;
        Some(if self.form == Form::Bytes { thousands(value) } else { self.written(value) })
    }

    /// The rounded figure.
    pub(crate) fn readable(&self, row: &StorageRow) -> Option<String> {
        (self.value)(row).map(|value| self.written(value))
    }

    fn written(&self, value: f64) -> String {
        match self.form {
            Form::Figure => figure(value),
            Form::Count => thousands(value),
            Form::Bytes => bytes(value),
            Form::Ratio => format!("{value:.2}"),
        }
    }
}

/// Every record, each followed by the published figures of the corresponding engine.
pub(crate) fn of_report(report: &Report) -> Vec<StorageRow> {
    report.storage.iter().flat_map(|record| [Some(measured(report, record)), published(record)]).flatten().collect()
}

fn measured(report: &Report, record: &StorageRecord) -> StorageRow {
    let load = load_of(report, record);
    let median = |figure: fn(&Measurement) -> Option<f64>| {
        let figures: Vec<f64> = load?.measurements().filter_map(figure).collect();
        Estimate::of(&figures).map(|estimate| estimate.median)
    };
    StorageRow {
        label: label(report, record),
        documents_per_second: median(|run| Some(run.documents_per_second)),
        server_us: median(|run| rate(run.server_cpu_seconds? * 1e6, run.documents as f64)),
        settled_us: median(|run| rate(run.settled_cpu_seconds()? * 1e6, run.documents as f64)),
        settled_after: median(|run| run.settling.map(|settling| settling.seconds)),
        objects: record.objects,
        data: record.data_size,
        storage: record.storage_size,
        index: record.index_size,
        file: record.file_size,
        live: record.live_size,
    }
}

fn published(record: &StorageRecord) -> Option<StorageRow> {
    let reference = record.reference.as_ref()?;
    Some(StorageRow {
        label: format!("  {}", reference.source),
        documents_per_second: Some(reference.documents_per_second),
        objects: Some(reference.objects),
        data: Some(reference.data_size),
        storage: Some(reference.storage_size),
        index: Some(reference.index_size),
        file: reference.file_size,
        ..StorageRow::default()
    })
}

/// The step that loaded the documents: the last load of the same target and variant.
fn load_of<'a>(report: &'a Report, record: &StorageRecord) -> Option<&'a Step> {
    let is_it = |step: &&Step| {
        step.operation == "load"
            && step.target == record.target
            && step.variant.iter().all(|setting| record.variant.contains(setting))
            && step.measurements().next().is_some()
    };
    report.steps.iter().rfind(is_it)
}

/// The name of a record: target, variant and repetition, where there are several.
fn label(report: &Report, record: &StorageRecord) -> String {
    let mut parts = vec![step_label::target_label(report, record.target).to_owned()];
    parts.extend(record.variant.iter().map(|(setting, value)| format!("{setting} {value}")));
    if report.storage.iter().any(|other| other.repetition > 1) {
        parts.push(format!("repetition {}", record.repetition));
    }
    parts.join(", ")
}
