//! Time series collections: a view on a collection of buckets, with its own way of writing.
//!
//! `create` creates `system.buckets.NAME` with the option `timeseries`, and a view NAME that unpacks its buckets. Reads
//! work as for all views. Writes are turned into writes of buckets here.
//!
//! A write command asks [`WriteTarget`](crate::target::WriteTarget) once whether its name is a time series.

mod creation;
mod delete;
mod index_specs;
mod insert;
mod modification;
mod open_buckets;
mod partial_filter;
mod series;
mod update;

pub(crate) use creation::{bucket_index, bucket_options, create, create_view, described_options};
pub(crate) use delete::{check_find_and_modify, delete, find_and_remove};
pub(crate) use index_specs::{bucket_key, of_buckets, of_measurements};
pub(crate) use insert::insert;
pub(crate) use modification::modify;
pub(crate) use open_buckets::OpenBuckets;
pub(crate) use series::{Series, buckets_of, find};
pub(crate) use update::update;

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Collection;
use bunko_timeseries::TimeSeries;

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
