//! Indexes of a time series are indexes of its buckets: on the source, and on the bounds of fields.

use crate::partial_filter;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_catalog::IndexSpec;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_timeseries::{TimeSeries, bucket_filter, path_in_source};

/// The option of a bucket index that keeps the specification for measurements, as in MongoDB.
pub(crate) const ORIGINAL: &str = "originalSpec";

/// The type of a geo index on measurements.
const SPHERE: &str = "2dsphere";
const SPHERE_OF_BUCKETS: &str = "2dsphere_bucket";
/// The prefix of a column's path.
const COLUMNS: &str = "data.";

/// The specification of the bucket index for an index of measurements.
/// # Errors
/// `InvalidOptions` for options that an index of measurements cannot have; as [`IndexSpec::parse_asked`], and 5916301
/// for conditions that cannot be applied to buckets, for a partial one.
pub fn of_buckets(spec: DocumentRef<'_>, series: &TimeSeries) -> Result<DocumentBuf> {
    let mut of_buckets = DocumentBuf::new();
    for element in spec {
        match (element.name, element.value) {
            ("key", ValueRef::Document(key)) => {
                of_buckets.append("key", &bucket_key(key, series)?);
            }
            ("sparse", value) if is_of_source_and_time(spec, series) => {
                of_buckets.append("sparse", value);
            }
            // MongoDB refuses it for other fields even if it is false.
            ("sparse", _) => return Err(unsupported("sparse")),
            ("unique" | "expireAfterSeconds", value) if !matches!(value, ValueRef::Boolean(false)) => {
                return Err(unsupported(element.name));
            }
            ("partialFilterExpression", _) if spec.get("collation").is_some() => {
                let message =
                    "a partial index of a time-series collection cannot have another collation than the collection";
                return Err(Failure::new(ErrorCode::INDEX_OPTIONS_CONFLICT, message));
            }
            ("partialFilterExpression", ValueRef::Document(filter)) => {
                IndexSpec::parse_asked(spec)?;
                partial_filter::check(filter, series)?;
                if let Some(filter) = bucket_filter(filter, series) {
                    of_buckets.append(element.name, &filter);
                }
                let key = spec.get("key").unwrap_or(ValueRef::Null);
                let original = DocumentBuf::new().with("key", key).with(element.name, filter);
                of_buckets.append(ORIGINAL, &original);
            }
            // This option is reserved for the server.
            (ORIGINAL, _) => return Err(unsupported(ORIGINAL)),
            (name, value) => {
                of_buckets.append(name, value);
            }
        }
    }
    Ok(of_buckets)
}

fn unsupported(option: &str) -> Failure {
    let message = format!("the option '{option}' is not supported on time-series collections");
    Failure::new(ErrorCode::INVALID_OPTIONS, message)
}

/// Whether all fields of an index are the source or the time.
fn is_of_source_and_time(spec: DocumentRef<'_>, series: &TimeSeries) -> bool {
    let is_one = |path: &str| path == series.time_field || path_in_source(path, series).is_some();
    let key = spec.get("key").and_then(ValueRef::as_document);
    key.is_some_and(|key| key.iter().all(|field| is_one(field.name)))
}

/// The key of the bucket index for an index of measurements by `key`.
/// # Errors
/// `InvalidOptions`, `CannotCreateIndex` and 7246201 for index types that measurements cannot have.
pub fn bucket_key(key: DocumentRef<'_>, series: &TimeSeries) -> Result<DocumentBuf> {
    if key.iter().any(|field| field.value.as_str() == Some("text")) {
        let message = "text indexes are not supported on time-series collections";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    let mut fields = DocumentBuf::new();
    for field in key {
        if let Some(path) = path_in_source(field.name, series) {
            fields.append(&path, field.value);
            continue;
        }
        if field.name == "$**" || field.name.ends_with(".$**") {
            let message = "wildcard indexes are not supported on measurements of a time series";
            return Err(Failure::new(ErrorCode(7_246_201), message));
        }
        if field.value.as_str() == Some(SPHERE) && field.name != series.time_field {
            fields.append(&format!("{COLUMNS}{}", field.name), SPHERE_OF_BUCKETS);
            continue;
        }
        let is_descending = match (field.value, number::as_f64(field.value)) {
            (_, Some(direction)) => direction < 0.0,
            (other, None) => {
                let kind = other.as_str().unwrap_or_else(|| other.kind().alias());
                let message = format!("indexes of type '{kind}' are not supported on measurements of a time series");
                return Err(Failure::new(ErrorCode::CANNOT_CREATE_INDEX, message));
            }
        };
        // A scan in index order returns buckets in the order of their first measurements.
        let sides = if is_descending { ["max", "min"] } else { ["min", "max"] };
        for side in sides {
            fields.append(&format!("control.{side}.{}", field.name), field.value);
        }
    }
    Ok(fields)
}

/// Shows a bucket index as an index of measurements.
pub fn of_measurements(spec: DocumentRef<'_>, series: &TimeSeries) -> DocumentBuf {
    let mut described = DocumentBuf::new();
    let original = spec.get(ORIGINAL).and_then(ValueRef::as_document);
    for element in spec {
        let key = match (element.name, element.value, original) {
            ("key", ValueRef::Document(key), _) => key,
            (ORIGINAL, _, Some(original)) => {
                let filter = original.get("partialFilterExpression").unwrap_or(ValueRef::Null);
                described.append("partialFilterExpression", filter);
                continue;
            }
            ("partialFilterExpression", _, Some(_)) => continue,
            (name, value, _) => {
                described.append(name, value);
                continue;
            }
        };
        let mut fields = DocumentBuf::new();
        for field in key {
            let source = series.source_field().unwrap_or("meta");
            if let Some(rest) = field.name.strip_prefix("meta") {
                fields.append(&format!("{source}{rest}"), field.value);
            } else if let (Some(path), Some(SPHERE_OF_BUCKETS)) =
                (field.name.strip_prefix(COLUMNS), field.value.as_str())
            {
                fields.append(path, SPHERE);
            } else if let Some(path) = field.name.strip_prefix("control.min.") {
                fields.append(path, field.value);
            } else if !field.name.starts_with("control.max.") {
                fields.append(field.name, field.value);
            }
        }
        described.append("key", &fields);
    }
    described
}
