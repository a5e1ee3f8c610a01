//! `$collStats`: the statistics of `collStats`, latencies of operations on the collection, and its number of scans.

use super::{Source, SourceStage};
use crate::collection_statistics::{CollectionStatistics, smallest_integer};
use crate::surroundings::Surroundings;
use crate::unstored::Unstored;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::{Collection, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_observe::ClassLatency;
use bunko_observe::statistics_scale::{check_storage_options, scale};
use bunko_request::counted_as::OperationClass;
use bunko_request::fields::Fields;
use bunko_series::Series;
use std::sync::Arc;

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::COLL_STATS,
    privileges: StagePrivileges::Actions(&[Action::CollStats]),
    source: Source::Collection { check: |specification| StatsSections::parse(specification).map(drop), documents },
};

/// The requested sections.
#[derive(Default)]
struct StatsSections<'d> {
    latencies: Option<DocumentRef<'d>>,
    storage: Option<DocumentRef<'d>>,
    count: Option<DocumentRef<'d>>,
    executions: Option<DocumentRef<'d>>,
}

/// The source of documents that a section describes.
enum Subject {
    Collection(Arc<Collection>),
    TimeSeries(Series),
    /// Statistics of documents that are generated while they are read.
    Made(Box<CollectionStatistics>),
}

impl Subject {
    fn statistics(&self) -> CollectionStatistics {
        match self {
            Self::Collection(collection) => CollectionStatistics::of(collection),
            Self::TimeSeries(series) => CollectionStatistics::of(&series.buckets),
            Self::Made(statistics) => CollectionStatistics::clone(statistics),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Collection(collection) => collection.count(),
            Self::TimeSeries(series) => series.buckets.count(),
            Self::Made(statistics) => statistics.count,
        }
    }

    /// Number of full scans.
    /// # Errors
    /// `CommandNotSupported` if scans are not counted.
    fn scans(&self, namespace: &Namespace) -> Result<u64> {
        match self {
            Self::Collection(collection) => Ok(collection.scans()),
            Self::TimeSeries(series) => Ok(series.buckets.scans()),
            Self::Made(_) => Err(Failure::not_supported_yet(&format!("queryExecStats in $collStats of {namespace}"))),
        }
    }
}

fn documents(
    surroundings: &Surroundings,
    namespace: &Namespace,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    let asked = StatsSections::parse(specification)?;
    let mut described = Vec::new();
    let mut writer = Writer::new(&mut described);
    writer
        .append("ns", namespace.as_str())
        .append("host", &*surroundings.host)
        .append("localTime", ValueRef::DateTime(surroundings.now_ms()));
    if let Some(options) = asked.latencies {
        let histograms = matches!(options.get("histograms"), Some(ValueRef::Boolean(true)));
        write_latencies(&mut writer, surroundings, namespace, histograms);
    }
    if let Some(options) = asked.storage {
        let subject = subject(surroundings, namespace, "storageStats")?;
        let scale = scale(&Fields::new("$collStats.storageStats", options))?;
        write_storage(&mut writer, &subject, scale);
    }
    if asked.count.is_some() {
        writer.append("count", smallest_integer(subject(surroundings, namespace, "count")?.count()));
    }
    if asked.executions.is_some() {
        let scans = subject(surroundings, namespace, "queryExecStats")?.scans(namespace)? as i64;
        // All scans count as non-tailable, because no scan is tailable.
        writer
            .begin_document("queryExecStats")
            .begin_document("collectionScans")
            .append("total", scans)
            .append("nonTailable", scans)
            .end()
            .end();
    }
    writer.end();
    Ok(vec![DocumentBuf::from_trusted(described)])
}

impl<'d> StatsSections<'d> {
    /// Parses the sections in order, and reports the first error.
    fn parse(specification: ValueRef<'d>) -> Result<Self> {
        let Some(body) = specification.as_document() else {
            let kind = specification.kind().alias();
            let message = format!("$collStats must take a nested object but found a value of type {kind}");
            return Err(Failure::new(ErrorCode(5_447_000), message));
        };
        let fields = Fields::new(bunko_stages::COLL_STATS.name, body);
        let mut asked = Self::default();
        for element in body {
            let section = match element.name {
                "latencyStats" => &mut asked.latencies,
                "storageStats" => &mut asked.storage,
                "count" => &mut asked.count,
                "queryExecStats" => &mut asked.executions,
                _ => return Err(unknown_field(&fields, element.name)),
            };
            if element.value.is_nullish() {
                continue;
            }
            let Some(options) = element.value.as_document() else {
                return Err(fields.mismatch(element.name, element.value, "type 'object'"));
            };
            check(element.name, options)?;
            *section = Some(options);
        }
        Ok(asked)
    }
}

/// Checks the options of one section.
fn check(section: &str, options: DocumentRef<'_>) -> Result<()> {
    match section {
        "latencyStats" => {
            let fields = Fields::new("$collStats.latencyStats", options);
            for option in options {
                match (option.name, option.value) {
                    ("histograms", ValueRef::Boolean(_)) => {}
                    ("histograms", value) => return Err(fields.mismatch("histograms", value, "type 'bool'")),
                    (name, _) => return Err(unknown_field(&fields, name)),
                }
            }
            Ok(())
        }
        "storageStats" => {
            let fields = Fields::new("$collStats.storageStats", options);
            scale(&fields)?;
            check_storage_options(&fields)
        }
        _ if options.is_empty() => Ok(()),
        _ => {
            let message = format!("the {section} option of $collStats takes an empty document");
            Err(Failure::new(ErrorCode(31170), message))
        }
    }
}

fn unknown_field(fields: &Fields<'_>, name: &str) -> Failure {
    Failure::unknown_field(format_args!("{}.{name}", fields.command))
}

/// Finds the source of documents that a section describes.
/// # Errors
/// `NamespaceNotFound`, `CommandNotSupportedOnView`.
fn subject(surroundings: &Surroundings, namespace: &Namespace, section: &str) -> Result<Subject> {
    let unstored = Unstored::at(&surroundings.catalog, namespace);
    if let Some(statistics) = unstored.map(|unstored| unstored.statistics(surroundings)).transpose()?.flatten() {
        return Ok(Subject::Made(Box::new(statistics)));
    }
    if let Some(series) = bunko_series::find(&surroundings.catalog, namespace)? {
        return Ok(Subject::TimeSeries(series));
    }
    surroundings.catalog.refuse_view(namespace)?;
    match surroundings.catalog.collection(namespace) {
        Some(collection) => Ok(Subject::Collection(collection)),
        None => {
            let message = format!(
                "Unable to retrieve {section} in $collStats stage :: caused by :: Collection [{namespace}] not found."
            );
            Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message))
        }
    }
}

fn write_latencies(writer: &mut Writer<'_>, surroundings: &Surroundings, namespace: &Namespace, histograms: bool) {
    let usage = surroundings.counters.namespaces().remove(namespace.as_str()).unwrap_or_default();
    writer.begin_document("latencyStats");
    for (class, name) in
        [(OperationClass::Read, "reads"), (OperationClass::Write, "writes"), (OperationClass::Command, "commands")]
    {
        writer.begin_document(name);
        usage.class(class).write(writer, histograms);
        writer.end();
    }
    // Transactions are not counted here, so all their values are 0.
    writer.begin_document("transactions");
    ClassLatency::default().write(writer, histograms);
    writer.end().end();
}

fn write_storage(writer: &mut Writer<'_>, subject: &Subject, scale: u64) {
    let statistics = subject.statistics();
    writer.begin_document("storageStats");
    match subject {
        Subject::TimeSeries(series) => write_buckets(writer, &statistics, series, scale),
        Subject::Collection(_) | Subject::Made(_) => statistics.write(writer, scale),
    }
    writer.end();
}

/// Writes the statistics of a time series: its documents are buckets, which have fields of their own. The index on
/// `_id`, which keeps buckets in order, is not counted.
pub fn write_buckets(writer: &mut Writer<'_>, statistics: &CollectionStatistics, series: &Series, scale: u64) {
    let mut written = Vec::new();
    let mut whole = Writer::new(&mut written);
    statistics.clone().without_index("_id_").write(&mut whole, scale);
    whole.end();
    for field in DocumentRef::trusted(&written).iter().filter(|field| !matches!(field.name, "count" | "avgObjSize")) {
        writer.append(field.name, field.value);
    }
    let average = statistics.data_bytes.checked_div(statistics.count).unwrap_or(0);
    writer
        .begin_document("timeseries")
        .append("bucketsNs", series.buckets.namespace().as_str())
        .append("bucketCount", smallest_integer(statistics.count))
        .append("avgBucketSize", smallest_integer(average))
        .end();
}
