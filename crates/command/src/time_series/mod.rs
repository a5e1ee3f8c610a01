//! Time series collections: a view over a collection of buckets, with writes of its own.
//!
//! `create` makes `system.buckets.NAME` with option `timeseries`, and a view NAME that unpacks its buckets. Reads go the way
//! of all views. Writes are turned into writes of buckets here.

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
use bunko_bson::ValueRef;
use bunko_catalog::{Catalog, Collection, Namespace};
use bunko_errors::Result;
use bunko_timeseries::{BUCKETS_PREFIX, TimeSeries};
use std::sync::Arc;

/// A time series collection: its options, and where its buckets are.
pub(crate) struct Series {
    pub options: TimeSeries,
    pub buckets: Arc<Collection>,
}

/// The collection of a time series' buckets.
/// # Errors
/// `InvalidNamespace` where the name is too long.
pub(crate) fn buckets_of(namespace: &Namespace) -> Result<Namespace> {
    Namespace::new(namespace.database(), &format!("{BUCKETS_PREFIX}{}", namespace.collection()))
}

/// The collection of that name; of a time series that of its buckets.
/// # Errors
/// `CommandNotSupportedOnView` where another view has the name.
pub(crate) fn collection_or_buckets(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
) -> Result<Option<Arc<Collection>>> {
    match find(&invocation.service.catalog, namespace)? {
        Some(series) => Ok(Some(series.buckets)),
        None => invocation.collection_not_view(namespace),
    }
}

/// The time series of that name, if there is one. Only what is no collection of its own can be one.
/// # Errors
/// As [`buckets_of`].
pub(crate) fn find(catalog: &Catalog, namespace: &Namespace) -> Result<Option<Series>> {
    // A name that is too long with the prefix before it is none of a time series.
    let Ok(buckets) = buckets_of(namespace) else { return Ok(None) };
    let Some(buckets) = catalog.collection(&buckets) else { return Ok(None) };
    if catalog.collection(namespace).is_some() || catalog.view(namespace)?.is_none() {
        return Ok(None);
    }
    let options = buckets.options();
    let options = options.as_ref().as_ref().get("timeseries").and_then(ValueRef::as_document);
    Ok(options.map(TimeSeries::of_document).map(|options| Series { options, buckets }))
}
