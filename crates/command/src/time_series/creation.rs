//! Creates a time series collection: the collection of its buckets, an index on it, and the view.

use super::buckets_of;
use crate::capped_options::CappedOptions;
use crate::collation_option;
use crate::expiry_option::{CollectionState, Expiry};
use crate::invocation::Invocation;
use bunko_bson::{ArrayBuf, Collator, DocumentBuf, DocumentRef};
use bunko_catalog::{Catalog, CreateOptions, IndexSpec, Namespace, ViewDefinition};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_timeseries::{BUCKETS_PREFIX, TimeSeries};

/// Options that a time series cannot have, whatever their value.
const REFUSED: &[&str] = &[
    "autoIndexId",
    "changeStreamPreAndPostImages",
    "clusteredIndex",
    "idIndex",
    "max",
    "pipeline",
    "size",
    "temp",
    "validationAction",
    "validationLevel",
    "validator",
    "viewOn",
];

/// Creates a time series collection, or accepts an existing one with these options.
/// # Errors
/// Errors of [`TimeSeries::parse`]; `InvalidOptions` for options that a time series cannot have; `NamespaceExists`.
pub(crate) fn create(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    option: DocumentRef<'_>,
    capped: CappedOptions,
) -> Result<()> {
    let series = TimeSeries::parse(option, "create.timeseries")?;
    check_options(invocation, &series, capped)?;
    let strings = collation_option::of_collection(invocation)?;
    let collation = strings.collator().map(Collator::specification);
    let expiry = Expiry::parse(invocation, CollectionState::New)?;
    let mut options = bucket_options(&series);
    if let Some(collation) = collation {
        options.append("collation", collation);
    }
    let options = expiry.put_into(options.as_ref());
    let catalog = &invocation.service.catalog;
    if let Some(existing) = super::find(catalog, namespace)? {
        if existing.options == series && existing.buckets.options().as_ref() == &options {
            return Ok(());
        }
        let message = format!("namespace {namespace} already exists, but with different options");
        return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message));
    }
    if catalog.collection(namespace).is_some() || catalog.view(namespace)?.is_some() {
        let message = format!("namespace {namespace} already exists");
        return Err(Failure::new(ErrorCode::NAMESPACE_EXISTS, message));
    }
    let buckets = buckets_of(namespace)?;
    let (collection, lsn) =
        catalog.create(&buckets, CreateOptions { options, ..CreateOptions::default() }, invocation)?;
    invocation.note_written(Some(lsn));
    let catalog = &invocation.service.catalog;
    if let Some(spec) = bucket_index(&series)? {
        let created = catalog.create_indexes(&collection, &[spec], invocation)?;
        invocation.note_written(created.lsn);
    }
    create_view(invocation, namespace, &series, collation)
}

/// # Errors
/// 6346401 for `encryptedFields`, `InvalidOptions` for other options that a time series cannot have and for a
/// `metaField` that is `_id` or the time field.
fn check_options(invocation: &Invocation<'_>, series: &TimeSeries, capped: CappedOptions) -> Result<()> {
    if invocation.field("encryptedFields").is_some() {
        let message = "'encryptedFields' is not allowed with 'timeseries'";
        return Err(Failure::new(ErrorCode(6_346_401), message));
    }
    // Restoring a dump of buckets sends the options that a bucket collection has.
    let is_restored = invocation.argument().as_str().is_some_and(|name| name.starts_with(BUCKETS_PREFIX));
    let of_buckets: &[&str] = if is_restored { &["clusteredIndex", "validator"] } else { &[] };
    let refused = REFUSED.iter().find(|option| !of_buckets.contains(option) && invocation.field(option).is_some());
    let capped = capped.is_capped.then_some(&"capped");
    if let Some(option) = refused.or(capped) {
        let message = format!("time-series collection options are not compatible with the option '{option}'");
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    // `$out` creates such collections all the same.
    match &series.meta_field {
        Some(meta) if meta == "_id" => Err(Failure::new(ErrorCode::INVALID_OPTIONS, "'metaField' cannot be \"_id\"")),
        Some(meta) if *meta == series.time_field => {
            Err(Failure::new(ErrorCode::INVALID_OPTIONS, "'metaField' cannot be the same as 'timeField'"))
        }
        _ => Ok(()),
    }
}

/// Creates the view that unpacks the buckets of that name.
/// # Errors
/// `InvalidNamespace`, `NamespaceExists`; errors of the storage.
pub(crate) fn create_view(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    series: &TimeSeries,
    collation: Option<DocumentRef<'_>>,
) -> Result<()> {
    let buckets = buckets_of(namespace)?;
    let view = ViewDefinition::new(namespace, buckets.collection(), pipeline(series).as_ref(), collation);
    let lsn = invocation.service.catalog.create_view(namespace, &view, invocation)?;
    invocation.note_written(lsn);
    Ok(())
}

/// The options of the collection of buckets.
pub(crate) fn bucket_options(series: &TimeSeries) -> DocumentBuf {
    DocumentBuf::new().with("timeseries", &series.document())
}

/// The index that finds buckets by their source and time; `None` without a source field.
/// # Errors
/// Errors of the index specification.
pub(crate) fn bucket_index(series: &TimeSeries) -> Result<Option<IndexSpec>> {
    let Some(source) = series.source_field() else { return Ok(None) };
    let time = series.time_field.as_str();
    let key = DocumentBuf::new().with(source, 1).with(time, 1);
    let spec = DocumentBuf::new().with("key", &key).with("name", format!("{source}_1_{time}_1").as_str());
    let spec = super::of_buckets(spec.as_ref(), series)?;
    IndexSpec::parse(spec.as_ref()).map(Some)
}

pub(super) fn pipeline(series: &TimeSeries) -> ArrayBuf {
    let mut unpack = DocumentBuf::new().with("timeField", series.time_field.as_str());
    if let Some(meta_field) = series.source_field() {
        unpack.append("metaField", meta_field);
    }
    unpack.append("bucketMaxSpanSeconds", series.span_seconds);
    let mut pipeline = ArrayBuf::new();
    pipeline.push(&DocumentBuf::new().with("$_internalUnpackBucket", &unpack));
    pipeline
}

/// The options of a time series, as `listCollections` shows them; `None` if the name is not one.
pub(crate) fn described_options(catalog: &Catalog, namespace: &Namespace) -> Result<Option<DocumentBuf>> {
    let series = super::find(catalog, namespace)?;
    Ok(series.map(|series| DocumentBuf::clone(&series.buckets.options())))
}
