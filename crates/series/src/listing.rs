//! Time series and their buckets, as lists of collections and indexes show them.

use crate::index_specs::{ORIGINAL, of_measurements};
use crate::series::find;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Collection, Namespace};
use bunko_errors::Result;
use bunko_timeseries::TimeSeries;

/// The options of a time series, as `listCollections` shows them; `None` if the name is not one.
/// # Errors
/// As [`find`].
pub fn described_options(catalog: &Catalog, namespace: &Namespace) -> Result<Option<DocumentBuf>> {
    let series = find(catalog, namespace)?;
    Ok(series.map(|series| DocumentBuf::clone(&series.buckets.options())))
}

/// A collection's options, as they are listed. Buckets are ordered by `_id`, as in a clustered collection.
pub fn shown_options(collection: &Collection) -> DocumentBuf {
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
pub fn shown_index(collection: &Collection, spec: DocumentRef<'_>) -> DocumentBuf {
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
        Some(series) if has_fields_of(&series) && spec.get(ORIGINAL).is_none() => {
            let original = of_measurements(spec, &series);
            spec.to_owned().with(ORIGINAL, &original)
        }
        _ => spec.to_owned(),
    }
}
