//! `create` of a time series: the collection of its buckets, an index on it, and the view.

use crate::capped_options::CappedOptions;
use crate::collation_option;
use crate::expiry_option::{CollectionState, Expiry};
use crate::invocation::Invocation;
use bunko_bson::{Collator, DocumentRef, StringOrder};
use bunko_catalog::{CreateOptions, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;
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

/// The time series that a request describes.
struct CreateSeries {
    series: TimeSeries,
    strings: StringOrder,
    expiry: Expiry,
}

impl CreateSeries {
    /// # Errors
    /// As [`create`], apart from `NamespaceExists`.
    fn parse(invocation: &Invocation<'_>, option: DocumentRef<'_>, capped: CappedOptions) -> Result<Self> {
        let series = TimeSeries::parse(option, "create.timeseries")?;
        parse_refused(invocation, capped)?;
        check_meta_field(&series)?;
        let strings = collation_option::of_collection(invocation)?;
        Ok(Self {
            series,
            strings,
            expiry: Expiry::parse(invocation, CollectionState::New, invocation.service.world.now_ms())?,
        })
    }
}

/// Creates a time series collection, or accepts an existing one with these options.
/// # Errors
/// Errors of [`TimeSeries::parse`]; 6346401 for `encryptedFields`; `InvalidOptions` for other options that a time
/// series cannot have; `NamespaceExists`.
pub(super) fn create(
    invocation: &mut Invocation<'_>,
    namespace: &Namespace,
    option: DocumentRef<'_>,
    capped: CappedOptions,
) -> Result<()> {
    let CreateSeries { series, strings, expiry } = CreateSeries::parse(invocation, option, capped)?;
    let collation = strings.collator().map(Collator::specification);
    let mut options = bunko_series::bucket_options(&series);
    if let Some(collation) = collation {
        options.append("collation", collation);
    }
    let options = expiry.put_into(options.as_ref());
    let catalog = &invocation.service.catalog;
    if let Some(existing) = bunko_series::find(catalog, namespace)? {
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
    let buckets = bunko_series::buckets_of(namespace)?;
    let (collection, lsn) =
        catalog.create(&buckets, CreateOptions { options, ..CreateOptions::default() }, invocation)?;
    invocation.note_written(Some(lsn));
    if let Some(spec) = bunko_series::bucket_index(&series)? {
        let created = catalog.create_indexes(&collection, &[spec], invocation)?;
        invocation.note_written(created.lsn);
    }
    let view = bunko_series::view(namespace, &series, collation)?;
    let lsn = catalog.create_view(namespace, &view, invocation)?;
    invocation.note_written(lsn);
    Ok(())
}

fn parse_refused(fields: &Fields<'_>, capped: CappedOptions) -> Result<()> {
    if fields.field("encryptedFields").is_some() {
        let message = "'encryptedFields' is not allowed with 'timeseries'";
        return Err(Failure::new(ErrorCode(6_346_401), message));
    }
    // Restoring a dump of buckets sends the options that a bucket collection has.
    let name = fields.body.first().and_then(|first| first.value.as_str());
    let is_restored = name.is_some_and(|name| name.starts_with(BUCKETS_PREFIX));
    let of_buckets: &[&str] = if is_restored { &["clusteredIndex", "validator"] } else { &[] };
    let refused = REFUSED.iter().find(|option| !of_buckets.contains(option) && fields.field(option).is_some());
    let capped = capped.is_capped.then_some(&"capped");
    match refused.or(capped) {
        Some(option) => {
            let message = format!("time-series collection options are not compatible with the option '{option}'");
            Err(Failure::new(ErrorCode::INVALID_OPTIONS, message))
        }
        None => Ok(()),
    }
}

/// Refuses a `metaField` that is `_id` or the `timeField`. `$out` accepts both.
fn check_meta_field(series: &TimeSeries) -> Result<()> {
    match &series.meta_field {
        Some(meta) if meta == "_id" => Err(Failure::new(ErrorCode::INVALID_OPTIONS, "'metaField' cannot be \"_id\"")),
        Some(meta) if *meta == series.time_field => {
            Err(Failure::new(ErrorCode::INVALID_OPTIONS, "'metaField' cannot be the same as 'timeField'"))
        }
        _ => Ok(()),
    }
}
