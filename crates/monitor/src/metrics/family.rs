//! A metric and where its values come from.

/// A family of samples with one name.
pub struct Family {
    /// The name without the prefix `bunko_`, the unit and the suffix `_total`.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// The unit, which ends the name: `bytes`, `seconds`, or empty.
    pub unit: &'static str,
    /// One sentence, without a full stop.
    pub help: &'static str,
    /// Where the values stand.
    pub source: Source,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows until the server restarts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by duration.
    Histogram,
}

/// Where the values of a family stand in the reply of `serverStatus`. A path is names joined by dots. A family whose
/// path is missing, such as that of another engine, has no sample.
pub enum Source {
    /// One value, multiplied by a factor.
    Value {
        /// The value's path.
        path: &'static str,
        /// The factor that makes it the family's unit.
        factor: f64,
    },
    /// Several values, each with a value of the label.
    Labelled {
        /// The label.
        label: &'static str,
        /// The label's values, and the paths.
        values: &'static [(&'static str, &'static str)],
    },
    /// One value from each document below a path; the label is the document's name.
    Each {
        /// The path of the documents.
        path: &'static str,
        /// The field in each document.
        field: &'static str,
        /// The label.
        label: &'static str,
    },
    /// Documents with `latency` and `ops`, in microseconds, and `histogram`; with several, the label tells them apart.
    Latencies {
        /// The label.
        label: &'static str,
        /// The label's values, and the paths.
        values: &'static [(&'static str, &'static str)],
    },
    /// The text of a path as a label of the constant 1.
    Text {
        /// The label and the path of each text.
        labels: &'static [(&'static str, &'static str)],
    },
}

impl Family {
    /// The name as scrapers see it, with prefix and unit, without `_total`.
    pub fn full_name(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!("_{}", self.unit) };
        format!("bunko_{}{unit}", self.name)
    }
}
