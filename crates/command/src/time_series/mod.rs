//! Time series collections: a view on a collection of buckets, with its own way of writing.
//!
//! `create` creates `system.buckets.NAME` with the option `timeseries`, and a view NAME that unpacks its buckets. Reads
//! work as for all views. Writes are turned into writes of buckets here.
//!
//! A write is first tried as one of a collection. If the catalog refuses it because its target is a view, it is tried
//! as one of a time series, so that other writes pay nothing.

mod creation;
mod delete;
mod index_specs;
mod insert;
mod modification;
mod open_buckets;
mod partial_filter;
mod update;

pub(crate) use creation::{bucket_index, bucket_options, create, create_view, described_options};
pub(crate) use delete::{delete_instead, find_and_remove_instead};
pub(crate) use index_specs::{bucket_key, of_buckets, of_measurements};
pub(crate) use insert::{insert, insert_instead};
pub(crate) use modification::modify;
pub(crate) use open_buckets::OpenBuckets;
pub(crate) use update::update_instead;

use crate::invocation::Invocation;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Collection, Namespace};
use bunko_errors::Result;
use bunko_timeseries::{BUCKETS_PREFIX, TimeSeries};
use std::sync::Arc;

/// A time series collection: its options and the collection of its buckets.
pub(crate) struct Series {
    pub options: TimeSeries,
    pub buckets: Arc<Collection>,
}

/// The name of the collection of a time series' buckets.
/// # Errors
/// `InvalidNamespace` if the name is too long.
pub(crate) fn buckets_of(namespace: &Namespace) -> Result<Namespace> {
    Namespace::new(namespace.database(), &format!("{BUCKETS_PREFIX}{}", namespace.collection()))
}

/// The collection of that name, or the collection of buckets of a time series of that name.
/// # Errors
/// `CommandNotSupportedOnView` if the name is a view but not a time series.
pub(crate) fn collection_or_buckets(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
) -> Result<Option<Arc<Collection>>> {
    match find(&invocation.service.catalog, namespace)? {
        Some(series) => Ok(Some(series.buckets)),
        None => invocation.collection_not_view(namespace),
    }
}

/// The time series of that name, if there is one. A name with a collection of its own is not a time series.
/// # Errors
/// As [`buckets_of`].
pub(crate) fn find(catalog: &Catalog, namespace: &Namespace) -> Result<Option<Series>> {
    // A name that is too long with the prefix cannot be a time series.
    let Ok(buckets) = buckets_of(namespace) else { return Ok(None) };
    let Some(buckets) = catalog.collection(&buckets) else { return Ok(None) };
    if catalog.collection(namespace).is_some() || catalog.view(namespace)?.is_none() {
        return Ok(None);
    }
    let options = buckets.options();
    let options = options.as_ref().as_ref().get("timeseries").and_then(ValueRef::as_document);
    Ok(options.map(TimeSeries::of_document).map(|options| Series { options, buckets }))
}

/// A collection's options, as they are listed. Buckets are ordered by `_id`, as in a clustered collection.
pub(crate) fn shown_options(collection: &Collection) -> DocumentBuf {
    let options = collection.options();
    let options = (*options).as_ref();
    if options.get("timeseries").is_none() {
        return options.to_owned();
    }
    let mut shown = DocumentBuf::new().with("clusteredIndex", true);
    for element in options.iter().filter(|element| element.name != "clusteredIndex") {
        shown.append(element.name, element.value);
    }
    shown
}

/// The specification of an index, as it is listed for the bucket collection itself. An index on fields of measurements
/// also shows its original specification.
pub(crate) fn shown_index(collection: &Collection, spec: DocumentRef<'_>) -> DocumentBuf {
    let options = collection.options();
    let series = (*options).as_ref().get("timeseries").and_then(ValueRef::as_document).map(TimeSeries::of_document);
    let key = spec.get("key").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let column = |path: &'_ str| {
        let prefixes = ["control.min.", "control.max.", "data."];
        prefixes.iter().find_map(|prefix| path.strip_prefix(prefix)).map(str::to_owned)
    };
    let has_fields_of = |series: &TimeSeries| {
        key.iter().filter_map(|field| column(field.name)).any(|column| column != series.time_field)
    };
    match series {
        Some(series) if has_fields_of(&series) && spec.get(index_specs::ORIGINAL).is_none() => {
            let original = of_measurements(spec, &series);
            spec.to_owned().with(index_specs::ORIGINAL, &original)
        }
        _ => spec.to_owned(),
    }
}
