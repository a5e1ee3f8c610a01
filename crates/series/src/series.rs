//! Finds a time series by its name.

use bunko_bson::ValueRef;
use bunko_catalog::{Catalog, Collection, Namespace};
use bunko_errors::Result;
use bunko_timeseries::{BUCKETS_PREFIX, TimeSeries};
use std::sync::Arc;

/// A time series collection.
pub struct Series {
    /// The options of the time series.
    pub options: TimeSeries,
    /// The collection of the time series' buckets.
    pub buckets: Arc<Collection>,
}

/// The name of the collection of a time series' buckets.
/// # Errors
/// `InvalidNamespace` if the name is too long.
pub fn buckets_of(namespace: &Namespace) -> Result<Namespace> {
    Namespace::new(namespace.database(), &format!("{BUCKETS_PREFIX}{}", namespace.collection()))
}

/// Finds the time series `namespace`; `None` if there is none. A name with a collection of its own is not a time
/// series.
/// # Errors
/// `InvalidViewDefinition` if a view definition cannot be read.
pub fn find(catalog: &Catalog, namespace: &Namespace) -> Result<Option<Series>> {
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
