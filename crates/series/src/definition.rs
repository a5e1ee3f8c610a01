//! The collection of a time series' buckets, its index, and the view that unpacks them.

use crate::index_specs::of_buckets;
use crate::series::buckets_of;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use bunko_catalog::{IndexSpec, Namespace, ViewDefinition};
use bunko_errors::Result;
use bunko_timeseries::TimeSeries;

/// The options of the collection of buckets.
pub fn bucket_options(series: &TimeSeries) -> DocumentBuf {
    DocumentBuf::new().with("timeseries", &series.document())
}

/// The index that finds buckets by their source and time; `None` without a source field.
/// # Errors
/// Errors of the index specification.
pub fn bucket_index(series: &TimeSeries) -> Result<Option<IndexSpec>> {
    let Some(source) = series.source_field() else { return Ok(None) };
    let time = series.time_field.as_str();
    let key = DocumentBuf::new().with(source, 1).with(time, 1);
    let spec = DocumentBuf::new().with("key", &key).with("name", format!("{source}_1_{time}_1").as_str());
    let spec = of_buckets(spec.as_ref(), series)?;
    IndexSpec::parse(spec.as_ref()).map(Some)
}

/// Defines the view `namespace`, which unpacks the buckets.
/// # Errors
/// As [`buckets_of`].
pub fn view(namespace: &Namespace, series: &TimeSeries, collation: Option<DocumentRef<'_>>) -> Result<ViewDefinition> {
    let mut unpack = DocumentBuf::new().with("timeField", series.time_field.as_str());
    if let Some(meta_field) = series.source_field() {
        unpack.append("metaField", meta_field);
    }
    unpack.append("bucketMaxSpanSeconds", series.span_seconds);
    let mut pipeline = ArrayBuf::new();
    pipeline.push(&DocumentBuf::new().with("$_internalUnpackBucket", &unpack));
    let buckets = buckets_of(namespace)?;
    Ok(ViewDefinition::new(namespace, buckets.collection(), pipeline.as_ref(), collation))
}
